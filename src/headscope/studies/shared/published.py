"""Published values that several studies compare themselves with."""

DISTANCE_ENTROPY = 0.61  # correlation over the heads of GPT-2 small: Vig & Belinkov 2019
NEXT_HEADS = 5  # of BERT-base look mostly at the next token: Clark et al. 2019
