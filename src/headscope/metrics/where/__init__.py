"""Where a head looks: at which positions and special tokens, how far, how widely, how steadily."""
