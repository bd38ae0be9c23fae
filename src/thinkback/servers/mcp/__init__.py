"""The log for other agents: a Model Context Protocol server, on the session."""
