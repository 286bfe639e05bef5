"""What a metric sees: batches of annotated inputs and the attention of one layer."""
