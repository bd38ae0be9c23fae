"""One package for each dialect that turns bytes into blocks and back, and what their streams have in common. Pure."""
