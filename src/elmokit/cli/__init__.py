"""The command ``elmokit``: one file a command, heavy imports inside."""
