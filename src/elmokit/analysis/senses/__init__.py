"""Word senses: tagged text, WordNet, sense vectors, disambiguation."""
