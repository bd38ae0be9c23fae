"""Text of models, programs and people as HTML: every function here takes hostile text and returns markup that is safe.

Promises: no tag, address, script or style of the text gets through, nothing of it turns the direction of writing or
cannot be seen; a text of any length and depth costs little.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import nh3
from markupsafe import Markup, escape

from thinkback.session.transcripts.ink import clean
from thinkback.session.transcripts.markup import rendered

LONGEST = 20_000
"""Characters of a block that a page of many shows; the block's own page has the rest."""
_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"ol": {"start"}}
_LONGEST_DIFF = 20_000
_LONGEST_JSON = 8_000
_LINES = re.compile(r"\r\n?")
_HUNK = re.compile(r"^@@ -\d+(,\d+)? \+\d+(,\d+)? @@", re.MULTILINE)
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\b\d[\d.eE+-]*)')


def plain(text: str) -> str:
    """``text`` with everything in it to be seen, and its line ends as they are in pages."""
    return clean(_LINES.sub("\n", text)).encode("utf-8", "backslashreplace").decode()


def shown(value: Any) -> Any:
    """What a template prints of ``value``: any text as ``plain``, markup of this module as it is."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@lru_cache(maxsize=512)
def markdown(text: str) -> Markup:
    """``text`` read as Markdown."""
    return Markup(nh3.clean(rendered(plain(text)), tags=_TAGS, attributes=_ATTRIBUTES, link_rel=None))


def structured(text: str) -> Markup:
    """A result or an argument: JSON laid out, a diff with its lines marked, anything else as it stands."""
    laid_out = _laid_out(text)
    if laid_out is not None:
        return Markup("<pre class=json>{}</pre>").format(_coloured(laid_out))
    if _HUNK.search(text[:2_000]):
        return Markup("<pre class=diff>{}</pre>").format(_marked(plain(text).split("\n")))
    return Markup("<pre>{}</pre>").format(plain(text))


def as_json(value: Any) -> Markup:
    """A value of JSON laid out, of a long one the beginning."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    left = len(text) - _LONGEST_JSON
    more = Markup("\n<b>{} more characters</b>").format(f"{left:,}") if left > 0 else ""
    return Markup("<pre class=json>{}{}</pre>").format(_coloured(text[:_LONGEST_JSON]), more)


def call(arguments: str) -> Markup:
    """The arguments of a call: a command, a change as a diff, and whatever else is said, by argument."""
    try:
        given: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return structured(arguments)
    rest: dict[Any, Any] = given if isinstance(given, dict) else {"": given}
    parts: list[Markup] = []
    match given:
        case {"command": str(command), **rest}:
            parts.append(Markup("<pre class=command>{}</pre>").format(plain(command)))
        case {"old_string": str(old), "new_string": str(new), **rest} if len(old) + len(new) <= _LONGEST_DIFF:
            lines = difflib.unified_diff(_split(old), _split(new), lineterm="", n=3)
            parts.append(Markup("<pre class=diff>{}</pre>").format(_marked([*lines][2:])))
        case _:
            pass
    rows = [Markup("<dt>{}</dt><dd>{}</dd>").format(plain(str(key)), _argument(value)) for key, value in rest.items()]
    listed = [Markup("<dl class=arguments>{}</dl>").format(Markup("").join(rows))] if rows else []
    return Markup("").join([*listed, *parts])


def clipped(text: str, limit: int = LONGEST) -> str:
    """The beginning of ``text``."""
    return text if len(text) <= limit else text[:limit]


def excerpt(text: str, limit: int = 320) -> str:
    """The first words of ``text``, on one line."""
    line = " ".join(plain(text[: limit * 4]).split())
    return line if len(line) <= limit else line[:limit].rstrip() + "…"


def highlighted(text: str, words: Sequence[str]) -> Markup:
    """``text`` with ``words`` marked, upper and lower case alike."""
    text = " ".join(plain(text).split())
    if not words:
        return escape(text)
    pieces = re.split(f"({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE)
    marked = (Markup("<mark>{}</mark>").format(piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces))
    return Markup("").join(marked)


def _argument(value: Any) -> Markup:
    if isinstance(value, str):
        return Markup("<pre>{}</pre>").format(plain(value)) if "\n" in value else Markup("{}").format(plain(value))
    return as_json(value) if isinstance(value, dict | list) else Markup("{}").format(json.dumps(value))


def _laid_out(text: str) -> str | None:
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _coloured(text: str) -> Markup:
    """JSON with its keys, texts and numbers marked."""
    text = plain(text)
    if len(text) > 4 * LONGEST:
        return escape(text)
    return Markup("").join(_tokens(text))


def _tokens(text: str) -> Iterator[Markup]:
    at = 0
    for found in _TOKEN.finditer(text):
        yield escape(text[at : found.start()])
        string, colon, word, _number = found.groups()
        kind = ("k" if colon else "s") if string else ("w" if word else "n")
        yield Markup("<span class={}>{}</span>{}").format(kind, string or found[0], colon or "")
        at = found.end()
    yield escape(text[at:])


def _marked(lines: list[str]) -> Markup:
    kinds = {"+": "ins", "-": "del"}
    out = []
    for line in lines:
        tag = kinds.get(line[:1])
        text = escape(plain(line))
        out.append(Markup(f"<{tag}>{{}}</{tag}>").format(text) if tag else text)
    return Markup("\n").join(out)


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
