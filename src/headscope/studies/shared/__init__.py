"""What several studies share: the words of a sentence and the tokens that spell them."""
