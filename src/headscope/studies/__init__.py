"""The two published studies, each declared in one place."""
