"""Commands for recorded requests and responses: decoded, converted, replayed."""
