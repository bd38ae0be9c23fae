"""The slash commands, one file per group; each file has its rows of the table in ``ROWS``."""
