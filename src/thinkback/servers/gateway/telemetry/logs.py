"""The gateway's log: one line for each request and for each event of its life, in one of three forms, to one place.

Promises: names and numbers alone. Nothing that was said, no key, no opaque value, no header's value goes in; a text is
cut and cannot begin a line of its own.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from thinkback.servers.gateway.config.schema import Logs

LEVELS: Mapping[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
LONGEST = 300
Value: TypeAlias = str | int | float | bool | None


class Log:
    """Lines at least as weighty as ``logs.level``, to ``write`` (standard error)."""

    def __init__(
        self,
        logs: Logs,
        write: Callable[[bytes], object] = lambda line: os.write(2, line),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._write = write
        self._clock = clock
        self.configure(logs)

    def configure(self, logs: Logs) -> None:
        """Write lines from now on as ``logs`` says."""
        self._least = LEVELS[logs.level]
        form = logs.format
        if form == "auto":
            form = "short" if os.isatty(2) else "text"
        self._encode = _FORMS[form]

    def wants(self, level: str) -> bool:
        """Whether lines of ``level`` are written."""
        return LEVELS[level] >= self._least

    def line(self, level: str, event: str, fields: Mapping[str, Value]) -> None:
        """Write one line; fields without a value are left out. A log that cannot be written stops nothing."""
        if LEVELS[level] < self._least:
            return
        head = {"time": _stamp(self._clock()), "level": level, "event": event}
        kept = {name: _cut(value) for name, value in fields.items() if value not in (None, "")}
        try:
            self._write(self._encode({**head, **kept}))
        except OSError:
            return


class Bridge(logging.Handler):
    """What libraries log, as lines of ours: their words, without the values of an exception."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        level = "error" if record.levelno >= logging.ERROR else "warning"
        kind = type(record.exc_info[1]).__name__ if record.exc_info and record.exc_info[1] else ""
        self._log.line(level, "library", {"logger": record.name, "message": str(record.msg), "error": kind})


def place_of(error: BaseException) -> str:
    """Locate the line that raised an error: file and line, without a word of what it says."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{at.tb_frame.f_code.co_filename.rpartition('thinkback/')[2]}:{at.tb_lineno}" if at else ""


def _stamp(seconds: float) -> str:
    whole = int(seconds)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((seconds - whole) * 1000):03d}Z"


def _cut(value: Value) -> Value:
    if isinstance(value, float):
        return round(value, 6)
    if not isinstance(value, str):
        return value
    text = value if len(value) <= LONGEST else f"{value[:LONGEST]}..."
    # what a client names its model with must not steer a terminal, turn a line round or begin another one
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(letter: str) -> str:
    return letter if letter.isprintable() else f"\\u{ord(letter):04x}"


def _as_json(fields: Mapping[str, Value]) -> bytes:
    return msgspec.json.encode(fields) + b"\n"


def _as_text(fields: Mapping[str, Value]) -> bytes:
    rest = dict(fields)
    head = f"{rest.pop('time')} {rest.pop('level')} {rest.pop('event')}"
    return " ".join((head, *(f"{name}={_word(value)}" for name, value in rest.items()))).encode() + b"\n"


def _word(value: Value) -> str:
    """``value`` as one word: in quotation marks where it would be more."""
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    plain = value.isascii() and value.isprintable() and not set(value) & set(' "=\\')
    return value if plain else msgspec.json.encode(value).decode()


def _as_short(fields: Mapping[str, Value]) -> bytes:
    """What a person looks for: of a request, who asked whom, what came of it, what it took and what went back."""
    clock = f"{str(fields['time'])[11:19]}Z"
    if fields["event"] != "request":
        return _as_text({**fields, "time": clock})
    said = {name: _word(value) for name, value in fields.items()}
    asked = said.get("upstream") or said.get("model") or f"{said['method']} {said.get('path') or said['page']}"
    tokens = [f"{said[f'{name}_tokens']} {word}" for name, word in _TOKENS if f"{name}_tokens" in said]
    parts = [clock, said["status"], said.get("key", ""), asked, f"{float(said['seconds']):.2f} s", ", ".join(tokens)]
    parts += [f"{word} {said[name]}" for name, word in _NAMED if name in said]
    return "  ".join(filter(None, parts)).encode() + b"\n"


_TOKENS = (("input", "in"), ("cached", "cached"), ("output", "out"), ("reasoning", "reasoning"))
_NAMED = (
    ("reattach", "reasoning"),
    ("degraded", "without"),
    ("cache_collapse", "cache lost by"),
    ("failure", "failed:"),
    ("reason", "because"),
    ("ended_by", "ended by"),
    ("session", "session"),
)
_FORMS: Mapping[str, Callable[[Mapping[str, Value]], bytes]] = {
    "json": _as_json,
    "text": _as_text,
    "short": _as_short,
}
