"""The chat in the terminal: its loop, its input line and its commands; ``drawing`` has how a turn looks."""
