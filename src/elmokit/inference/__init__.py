"""Running a biLM over many sentences: batches, the word cache, the choice of layers, states."""
