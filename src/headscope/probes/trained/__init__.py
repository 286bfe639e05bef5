"""Probes that are trained on attention to predict dependency trees."""
