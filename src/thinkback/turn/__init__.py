"""A turn as a state machine, and the plan of each request inside it. Pure: commands out, events in."""
