"""What stands around a proxy that is measured: a fast provider that says the same, and a client that is no brake."""
