"""What a run found and what is said of it: torch-free, between computing and looking."""
