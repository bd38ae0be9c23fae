"""What makes a gateway run: processes, signals, and everything put together from the configuration."""
