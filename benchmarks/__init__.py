"""Speed claims as ratios, measured side by side; `python -m benchmarks` runs them all."""
