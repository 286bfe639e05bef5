"""What a head looks at: tags, relations, arcs, what was said before, the next of a series."""
