"""Heads as resolvers of coreference."""
