"""Sentences, corpora, readers, annotation, and alignment of words to tokens."""
