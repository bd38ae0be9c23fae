"""What can be said about requests without taking part in them: a log of their use, and what they cost."""
