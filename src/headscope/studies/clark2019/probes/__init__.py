"""Heads as classifiers, and small classifiers trained on what heads attend to."""
