"""The command ``elmokit``: one file per command. Heavy imports stay inside the functions."""
