"""Answers another program's request: recognise, resume, plan, send, relay, record; a machine without I/O.

``exchange.Exchange`` takes events and gives commands; whoever drives it has the sockets, the log, the ciphers and the
keys. Must not: open anything, or know a server.
"""
