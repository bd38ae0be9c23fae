"""The HTTP transport: one argument to a provider's SDK, and its requests carry the reasoning that they need.

``transports`` has what programs use, ``passage`` the way of one request, ``journal`` the log, ``recognising`` which API
a request is for, ``telling`` names of conversations and why a request went as it did.
"""
