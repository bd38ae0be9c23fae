"""``connect``: points a coding agent's own configuration at a gateway, and takes that back."""
