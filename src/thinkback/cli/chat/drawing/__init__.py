"""How a turn is drawn: thinking, answers as Markdown, calls, on a light or a dark terminal."""
