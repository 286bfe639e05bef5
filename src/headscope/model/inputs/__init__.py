"""From a text to what a network takes: tokens, spans of them, chats, batches."""
