"""Linear probes: classifiers on frozen vectors."""
