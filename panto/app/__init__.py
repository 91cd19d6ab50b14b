"""Wiring: the command line, the configuration, and the one function that constructs the house.

Floor 6; its door is argv, the environment and the person's folders: no other room reads them. Its rule: everything
below is handed what it needs. Importing this package imports nothing.
"""

__all__ = ["argv", "build", "config", "credentials", "main", "paths", "trust"]
