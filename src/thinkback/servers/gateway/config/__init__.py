"""The configuration: what can be in it, how it is read, and what is wrong with it."""
