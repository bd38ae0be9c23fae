"""The public face: stores, sessions, replies. The only library package that reads files, keys and the environment.

A program holds a ``store`` and a ``session``, the face of a ``conversation``. What a request goes by is taken once, as
a ``configuration``. A turn goes from ``requests`` (what a caller says) over ``turns`` (checks, host, driver) and
``planning`` (each request, to a ``place``) to ``stream`` or ``aio`` and ends in a ``reply``; ``wire`` does the same
without our HTTP. ``history`` is what can be done with a conversation that is there; ``exchange`` and ``transcripts``
take it elsewhere; ``agents`` is what models may do, ``profiles`` and ``apps`` are what a session goes by, ``config`` is
what the machine says.
"""
