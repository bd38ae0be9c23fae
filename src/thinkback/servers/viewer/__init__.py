"""The viewer: sessions, conversations, and what went back of them, and why, as pages. It only looks."""
