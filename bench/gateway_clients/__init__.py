"""Real clients, unmodified, before the referee and through the gateway. ``make clients``.

A client's script is the same in both: what differs is the base URL and the key. Scripts run in an environment of their
own, one process per client; the gateway runs in another, as users run it.
"""
