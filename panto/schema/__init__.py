"""The values everyone speaks: messages, events, signals, ops, queries, views and errors.

Floor 1, pure: the standard library and msgspec only. Its rule: values are frozen, closed and named once; whatever
two rooms say to each other is said in these words.
"""

__all__ = [
    "bodies", "client", "codec", "contributions", "errors", "events", "messages", "ops", "queries", "records",
    "signals", "stream", "value", "view",
]  # fmt: skip
