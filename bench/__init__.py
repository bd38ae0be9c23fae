"""Benchmarks: what thinkback costs, as ratios against a limit or a peer measured in the same run.

``python -m bench`` prints a table and writes ``bench/latest.json``. Streams and conversations are synthetic and the
same in every run; no provider is called. The machine's own speed cancels out in a ratio, so only ratios and the
three process-start figures are held against an aim; a figure that misses its aim says "short".
"""
