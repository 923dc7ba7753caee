"""A corpus, a sentence a line, to vectors on disk: streaming, resumable, never half written."""
