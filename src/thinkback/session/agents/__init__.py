"""What models may do in a session: tools by name, sub-agents, notes of their own, and the permissions they go by."""
