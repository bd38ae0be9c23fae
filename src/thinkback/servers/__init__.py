"""Servers: shells in which other programs meet thinkback. Each stands alone; none imports another."""
