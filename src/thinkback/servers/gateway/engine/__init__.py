"""From a request that is known to its response: planned, sent, passed on and recorded."""
