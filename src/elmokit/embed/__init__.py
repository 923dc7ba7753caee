"""Write the vectors of a corpus, one sentence per line, to a file; runs can be resumed."""
