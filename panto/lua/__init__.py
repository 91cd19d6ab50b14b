"""Extensions and scripts in Lua: the state, the driver, and what `require('panto')` means.

Floor 5. Its door: lupa, imported here and nowhere else. Its rule: Lua sees plain values and Python sees plain values;
what lies between is numbers.
"""

__all__: list[str] = []
