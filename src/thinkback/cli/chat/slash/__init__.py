"""The slash commands: a file for each group, with its rows of the table in ``ROWS``; ``row`` says what a row is."""
