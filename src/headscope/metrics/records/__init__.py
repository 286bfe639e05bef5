"""What is kept of single inputs: examples, exemplars by kind, draws, top tokens, maps."""
