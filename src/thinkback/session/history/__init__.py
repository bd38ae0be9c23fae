"""What is done with a conversation that is there: branches, edits, checkpoints, searches, erasure, and why."""
