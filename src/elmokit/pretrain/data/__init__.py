"""Text files to shards of word numbers to training batches."""
