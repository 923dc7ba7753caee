"""A training run on disk: paths, folder, checkpoint, progress and reports."""
