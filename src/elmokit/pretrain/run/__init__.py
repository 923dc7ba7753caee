"""A training run on disk: settings, metrics, checkpoints, progress."""
