"""Finds out by experiment what a host demands of earlier reasoning. Pure: requests go out, answers come in.

``experiments`` runs a fixed conversation and its variations, ``edits`` makes variations of a request's JSON, ``row``
draws the conclusions, ``toml`` writes them down.
"""
