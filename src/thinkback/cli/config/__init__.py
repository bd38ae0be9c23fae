"""Commands for what the user sets up: settings, profiles, keys, endpoints, apps."""
