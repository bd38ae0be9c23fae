"""Functions from histories to what is to be appended: branches, edits, merges, checkpoints, searches, checks. Pure."""
