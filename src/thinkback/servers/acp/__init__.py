"""The agent for editors: the Agent Client Protocol, on the session."""
