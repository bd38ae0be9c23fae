"""Profiles of a session: their files, what a session makes of them, and which of several targets is asked."""
