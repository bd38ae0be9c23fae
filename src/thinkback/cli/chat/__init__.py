"""The chat in the terminal: its loop and commands, and how a turn is drawn."""
