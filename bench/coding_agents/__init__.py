"""Real coding agents, unmodified, before the referee and through the gateway. ``make agents``.

An agent is the same in both: its own program in a home of its own, configured by ``thinkback connect``. What differs is
the address and the key.
"""
