"""The neutral waist: blocks, messages, commits, rules and targets as values, their canonical bytes and hashes. Pure."""
