"""Who may ask, how much, and what they used; and what was answered to whoever asks again."""
