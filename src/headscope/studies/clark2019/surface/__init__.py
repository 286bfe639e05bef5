"""Surface patterns: positions, special tokens, entropy, gradients, clusters (§3, §6)."""
