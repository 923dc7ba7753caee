"""From a pile of text to a biLM."""
