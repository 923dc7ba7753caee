"""Results as tables, files and pictures: one ``<topic>_report.py`` per analysis."""
