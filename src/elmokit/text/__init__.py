"""From text to numbers: tokenizers, characters of a word, vocabulary."""
