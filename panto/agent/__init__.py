"""One turn of one agent: the loop, and what it hands to models and tools.

Floor 3; it has no I/O of its own. Its rule: the loop is functions that are handed their world (`Ports`), and every
step it takes is read from the session's machine and committed to it. Read `loop.py` first.
"""

__all__ = ["approval", "compaction", "context", "dispatch", "hooks", "loop", "ports", "prompt"]
