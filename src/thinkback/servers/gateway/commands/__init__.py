"""``thinkback gateway`` and what is under it."""
