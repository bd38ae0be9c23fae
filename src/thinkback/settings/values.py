"""Keys and values as people, files and programs say them: found, read, written back, completed.

Must not: know who said them; that is in ``layers``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from thinkback.errors import SettingError
from thinkback.settings import permissions
from thinkback.settings.registry import DEFAULT, ELSEWHERE, KEYS, LARGEST, Key, Value, is_group, ours, param

BOOLEANS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
SHOWN = 60
_PARAM = re.compile(r"params(\.[A-Za-z0-9_-]+)+")
LONGEST_SHOWN = 20
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")


def find(name: str) -> Key:
    """The key called ``name``, upper and lower case distinct; ``SettingError`` with the nearest names otherwise."""
    known = ours(name)
    if known in KEYS:
        return KEYS[known]
    if _PARAM.fullmatch(known):
        return param(known)
    if name in ELSEWHERE:
        raise SettingError(
            f"{name} is not a setting here: {ELSEWHERE[name][0]}",
            details={"key": name, "close_matches": ()},
            next_actions=ELSEWHERE[name][1:],
        )
    import difflib

    # only last parts are compared: with the group's name in front everything looks alike
    last = {known.rpartition(".")[2].lower(): known for known in KEYS}
    wanted = name.rpartition(".")[2].lower()
    matches = [wanted] if wanted in last else difflib.get_close_matches(wanted, last, cutoff=0.7)
    close = tuple(last[match] for match in matches)
    raise SettingError(
        f"there is no setting {shorten(name)}",
        details={"key": name, "close_matches": close},
        next_actions=[f"did you mean {' or '.join(close)}?" if close else f"the settings are {', '.join(KEYS)}"],
    )


def parse(name: str, raw: object) -> Value:
    """``raw``, from a person's text or from Python and TOML alike, as the value of the key ``name``."""
    key = find(name)
    value = DEFAULT if raw == DEFAULT else PARSERS[key.type](key, raw)
    if value is None:
        raise SettingError(
            f"{name} cannot be {quote(raw)} (allowed: {', '.join(key.allowed)})",
            details={"key": name, "value": raw if is_plain(raw) else quote(raw), "allowed": key.allowed},
        )
    return value


def to_text(value: Value) -> str:
    """The text that ``parse`` reads back as ``value``; a text of a request field that looks like JSON is quoted."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):  # every request tells several: the encoder takes ten times as long
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False)


def to_json(value: Value) -> str:
    """The same for a request field, whose texts may look like numbers."""
    return value if value == DEFAULT else json.dumps(value, ensure_ascii=False)


def complete(prefix: str) -> tuple[str, ...]:
    """What may follow: the keys that begin with ``prefix`` or, after a key and a space, the values that do."""
    name, space, value = prefix.partition(" ")
    if not space:
        return tuple(known for known in KEYS if known.startswith(name))
    key = KEYS.get(name)
    if key is None or key.type not in ("boolean", "choice"):
        return ()
    return tuple(word for word in key.allowed if word.startswith(value.lstrip()))


def flatten(table: Mapping[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    """Pairs of dotted name and value from nested tables; a table where no group of settings is comes out whole."""
    for part, value in table.items():
        name = f"{path}{part}"
        if isinstance(value, Mapping) and is_group(name):
            yield from flatten(value, f"{name}.")
        else:
            yield name, value


def quote(raw: object) -> str:
    """A refused value as error texts show it: as it is where it is plain, else by its kind and size."""
    if is_plain(raw):
        return shorten(raw)
    if isinstance(raw, str):
        return f"a text of {len(raw)} characters (not shown: it may be a secret)"
    return f"a value of type {type(raw).__name__}"


def is_plain(raw: object) -> bool:
    """Whether a value is shown in errors: a number, or a short text that cannot be a key or token.

    A person who pastes a key into the wrong place must not find it in a terminal's history or in a bug report.
    """
    if isinstance(raw, str):
        return len(raw) <= LONGEST_SHOWN and not (_LETTER.search(raw) and _DIGIT.search(raw))
    if isinstance(raw, list | tuple):
        return all(map(is_plain, raw))
    return raw is None or isinstance(raw, bool | int | float)


def shorten(raw: object) -> str:
    """The ``repr`` of ``raw`` for an error text, cut where it is long."""
    try:
        text = repr(raw)
    except ValueError:  # an integer of more digits than the interpreter prints
        text = f"a value of type {type(raw).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _boolean(_key: Key, raw: object) -> Value | None:
    if isinstance(raw, str):
        return BOOLEANS.get(raw.strip().lower())
    return raw if isinstance(raw, bool) else None


def _choice(key: Key, raw: object) -> Value | None:
    word = raw.strip() if isinstance(raw, str) else ""
    return word if word in key.choices else None


def _integer(key: Key, raw: object) -> Value | None:
    number = raw
    if isinstance(raw, str):
        digits = raw.strip()
        # ten digits hold LARGEST; int() alone would also read "1_000" and other scripts' digits
        number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= len(str(LARGEST)) else None
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return number if key.smallest <= number <= LARGEST else None


def _json(_key: Key, raw: object) -> Value | None:
    """What a text says as JSON, else the text itself; other values as they are, if JSON can hold them."""
    if isinstance(raw, str):
        try:
            return json.loads(raw, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return raw
    try:
        return json.loads(json.dumps(raw, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None


def _refuse(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity are no JSON


def percentages(text: str) -> tuple[int, ...]:
    """The numbers of a value like ``70/80/90``."""
    return tuple(int(number) for number in text.split("/"))


def _percentages(_key: Key, raw: object) -> Value | None:
    words = raw.split("/") if isinstance(raw, str) else raw
    if not isinstance(words, list | tuple) or len(words) != _TIERS:
        return None
    numbers = [_integer(_PERCENT, word) for word in words]
    rising = [number for number in numbers if isinstance(number, int) and number <= _MOST_PERCENT]
    return "/".join(map(str, rising)) if len(rising) == _TIERS and rising == sorted(set(rising)) else None


def _rules(_key: Key, raw: object) -> Value | None:
    text = ",".join(map(str, raw)) if isinstance(raw, list | tuple) else raw
    rules = permissions.read_rules(text) if isinstance(text, str) else None
    return permissions.write_rules(rules) if rules else None


def _names(_key: Key, raw: object) -> Value | None:
    words = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(words, list | tuple):
        return None
    names = [word.strip() if isinstance(word, str) else "" for word in words]
    return ",".join(names) if names and all(name.isidentifier() and name.isascii() for name in names) else None


def _text(_key: Key, raw: object) -> Value | None:
    word = raw.strip() if isinstance(raw, str) else ""
    return word if word.isprintable() and word and " " not in word else None


def _words(_key: Key, raw: object) -> Value | None:
    words = raw.strip() if isinstance(raw, str) else ""
    return words if words.isprintable() and 0 < len(words) <= _LONGEST_WORDS else None


def _field(key: Key, raw: object) -> Value | None:
    return None if raw in _TAKEN else _text(key, raw)


# Fields of a message that say something else, or say it in another form.
_TAKEN = ("role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call", "reasoning_details")
_LONGEST_WORDS = 80
_TIERS, _MOST_PERCENT = 3, 100
_PERCENT = Key("", "", "integer", "", smallest=1)
PARSERS = {
    "boolean": _boolean,
    "choice": _choice,
    "field": _field,
    "integer": _integer,
    "json": _json,
    "names": _names,
    "percentages": _percentages,
    "rules": _rules,
    "text": _text,
    "words": _words,
}
