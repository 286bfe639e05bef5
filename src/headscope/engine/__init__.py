"""Shards, resuming and execution of a study over a corpus."""
