"""The viewer: sessions, conversations, and which reasoning was sent back, and why, as pages. It changes nothing."""
