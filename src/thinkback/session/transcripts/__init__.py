"""Conversations as text for people: in a terminal, as Markdown, as an HTML page."""
