"""Loading models, batching inputs, capturing attention, tracing one input."""
