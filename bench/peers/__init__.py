"""Other clients before the same referee as thinkback: who is refused where, and who forgets. ``make peers``.

No peer is patched. Each is used as its documentation shows, with nothing but its public names; what is passed on
between two requests is what that documentation says to pass on.
"""
