"""Text files → shards of word numbers → batches to train on."""
