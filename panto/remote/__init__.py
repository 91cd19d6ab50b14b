"""Other programs at the door: headless runs and record streams on stdio, and a linear client for plain terminals.

Floor 5; its door is stdio. Its rule: it imports only the schema, as proof that the wall behind the screen holds.
"""

__all__ = ["headless", "jsonl", "lines"]
