"""The gateway: a server that clients point their base URL at. It gives back the reasoning that they forget.

A request comes in through ``http``, which knows what is behind it as ``http.backend`` alone. ``engine`` answers it, on
the conversation that ``recognition`` finds. ``access``, ``storing``, ``upstreams`` and ``telemetry`` serve both and do
not know each other; ``running`` puts everything together from ``config``, for ``commands`` to start. The modules that
stand here are what all of them speak of.
"""
