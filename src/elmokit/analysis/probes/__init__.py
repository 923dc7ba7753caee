"""Linear classifiers on frozen vectors."""
