"""The registry of settings and the layers they are set in.

Everything here is a value or a function of values: nothing is cached, so that each request reads the settings afresh.
"""

from __future__ import annotations

from thinkback.settings.files import parse_user_file
from thinkback.settings.layers import LAYERS, WRITABLE, Layer, Layers, SettingEntry, SettingSource, restore, snapshot
from thinkback.settings.registry import KEYS, Key, Value
from thinkback.settings.values import complete, find, parse, percentages, to_text

__all__ = [
    "KEYS",
    "LAYERS",
    "WRITABLE",
    "Key",
    "Layer",
    "Layers",
    "SettingEntry",
    "SettingSource",
    "Value",
    "complete",
    "find",
    "parse",
    "parse_user_file",
    "percentages",
    "restore",
    "snapshot",
    "to_text",
]
