"""Pure functions of attention weights, and additive states over them; one file per question."""
