"""The gateway: a server that clients point their base URL at. It gives back the reasoning that they forget."""
