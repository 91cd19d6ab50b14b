"""What the screen is made of, one thing a file; nothing here knows the session, only values to draw."""

__all__: list[str] = []
