"""Readers of corpus files: each streams the sentences of one file in one format."""
