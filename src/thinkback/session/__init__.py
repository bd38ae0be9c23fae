"""The public face: stores, sessions, replies. The only library package that reads files, keys and the environment."""
