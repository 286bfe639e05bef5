"""Runs work over pieces: in this process or on a Ray cluster. Knows nothing of models."""
