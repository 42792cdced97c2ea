"""Test sets of text that others wrote, never trained on, and how training text is kept apart from them."""
