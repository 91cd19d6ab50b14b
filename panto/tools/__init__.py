"""Hands: the tools a model may call, and what they stand on.

Floor 2; its door is processes and files. Its rule: a tool is told everything by its context, touches nothing it does
not name, and whatever it starts can be ended. The seam is `tool.py`; `builtins.py` puts panto's own together.
"""

__all__ = [
    "arguments", "builtins", "fetch", "files", "frames", "instructions", "jobs", "masks", "paths", "processes",
    "registry", "restore", "sandbox", "serve", "shell_rules", "shell_wrappers", "tool", "worker",
]  # fmt: skip
