"""The gateway's secret, and what is sealed with it."""
