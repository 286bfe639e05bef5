"""Attention of a whole batch without padding, on a GPU."""
