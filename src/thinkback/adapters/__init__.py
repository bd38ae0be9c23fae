"""thinkback inside other people's programs. Each adapter imports its host, and nothing imports an adapter."""
