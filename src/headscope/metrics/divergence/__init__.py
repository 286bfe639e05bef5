"""How differently two heads attend: Jensen–Shannon divergence between all pairs of heads."""
