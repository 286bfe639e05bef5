"""The explorer: a web app over runs and, if asked for, one loaded model."""
