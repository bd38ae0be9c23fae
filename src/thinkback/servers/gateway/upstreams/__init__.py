"""The side of the providers: which of them is asked, and the way there."""
