"""From a name to a network: where it comes from, what it needs, how it is held."""
