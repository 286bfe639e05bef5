"""Interactive and printed views of one trace."""
