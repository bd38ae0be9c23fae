"""Runs a turn: HTTP, authentication, clock, ids, tools. Two small drivers, sync and async, of one machine."""
