"""Results as tables, files and pictures."""
