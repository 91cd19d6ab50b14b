"""What lies over the main screen for a while: lists to choose from, a pager, a child's transcript. Escape goes back."""

__all__: list[str] = []
