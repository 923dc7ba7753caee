"""From text to ids: tokenizers, sentence splitting, alphabets, vocabulary."""
