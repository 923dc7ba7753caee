"""Text for training: preparation, vocabulary, batches and tensors."""
