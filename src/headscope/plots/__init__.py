"""Figures that know nothing of studies."""
