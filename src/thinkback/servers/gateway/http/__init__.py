"""The side of the clients: from a connection to a request that is known, and the way of its response."""
