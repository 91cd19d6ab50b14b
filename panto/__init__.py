"""panto: a coding agent for the terminal, durable and extensible."""

__version__ = "0.1.0"
