"""Histories that other programs wrote, read into drafts: a module a program, bytes in, values out.

Promises: a reader never raises for what a file holds: what can be read is, and the rest is named and counted. What a
file says is data: nothing of it is a setting, a permission or a path here. Must not: do I/O, or know a clock.
"""
