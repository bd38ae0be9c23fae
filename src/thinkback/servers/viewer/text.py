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
from html import unescape
from typing import Any

import nh3
from markupsafe import Markup, escape

from thinkback.model.blocks import Media
from thinkback.model.commits import Message, Payload
from thinkback.servers.viewer import code
from thinkback.servers.viewer.conversation import LONGEST as LONGEST
from thinkback.session.transcripts.ink import clean
from thinkback.session.transcripts.markup import rendered
from thinkback.session.transcripts.page import data_address

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"ol": {"start"}}
_CODE = {"code": {f"language-{language}" for language in code.LANGUAGES}}
_FENCED = re.compile(r'<pre><code(?: class="(?:language-([a-z0-9+]+))?")?>([^<]*)</code></pre>')
_LONGEST_DIFF = 20_000
_MOST_LINES = 600
_LONGEST_JSON = 8_000
_COUNTED = 1_000_000
_LINES = re.compile(r"\r\n?")
_HUNK = re.compile(r"^@@ -\d+(,\d+)? \+\d+(,\d+)? @@", re.MULTILINE)
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*"?)(\s*:)?|\b(true|false|null)\b|(-?\b\d[\d.eE+-]*)')
_EMOJI = "\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
# Arabic and its neighbours, the scripts of India and Southeast Asia, Mongolian: joiners between letters are spelling.
_JOINED = "\u0600-\u085f\u08a0-\u0e7f\u0f00-\u109f\u1780-\u18af\ua8e0-\ua8ff\ufb50-\ufdff\ufe70-\ufefc"
# What takes no room or turns the direction of writing; what joins two emoji or two letters stays.
_UNSEEN = re.compile(
    "[\u00ad\u061c\u115f\u1160\u200b\u200e\u200f\u2060-\u2064\u3164\ufeff\uffa0]"
    f"|(?<![{_JOINED}])\u200c|\u200c(?![{_JOINED}])"
    f"|(?<![{_EMOJI}{_JOINED}])\u200d|(?<=[{_EMOJI}])\u200d(?![{_EMOJI}])|(?<=[{_JOINED}])\u200d(?![{_JOINED}])"
)


def plain(text: str) -> str:
    """``text`` with everything in it to be seen, and its line ends as they are in pages."""
    return _visible(clean(_LINES.sub("\n", text))).encode("utf-8", "backslashreplace").decode()


def shown(value: Any) -> Any:
    """What a template prints of ``value``: any text as ``plain``, markup of this module as it is."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def markdown(text: str) -> Markup:
    """``text`` read as Markdown; what is not long is remembered."""
    return _remembered(text) if len(text) <= LONGEST else _markdown(text)


@lru_cache(maxsize=512)
def _remembered(text: str) -> Markup:
    return _markdown(text)


def _markdown(text: str) -> Markup:
    written = nh3.clean(rendered(plain(text)), tags=_TAGS, attributes=_ATTRIBUTES, allowed_classes=_CODE, link_rel=None)
    written = _visible(clean(written))  # Markdown has names for characters, too
    return Markup(_FENCED.sub(_fenced, written))


def _fenced(found: re.Match[str]) -> str:
    language, source = found.groups()
    return f"<pre><code>{code.coloured(unescape(source), language or '')}</code></pre>"


def structured(text: str) -> Markup:
    """A result or an argument: JSON laid out, a diff with its lines marked, anything else as it stands."""
    laid_out = _laid_out(text)
    if laid_out is not None:
        return Markup("<pre class=json>{}</pre>").format(_coloured(laid_out))
    if _HUNK.search(text[:2_000]):
        return _diff(plain(text).split("\n"))
    return Markup("<pre>{}</pre>").format(plain(text))


def as_json(value: Any) -> Markup:
    """A value of JSON laid out, of a long one the beginning."""
    try:
        text, length = _begun(value, _LONGEST_JSON, _COUNTED)
    except RecursionError:
        return Markup("<pre>(nested too deeply to be laid out)</pre>")
    left = length - _LONGEST_JSON
    least = "more than " if length > _COUNTED else ""
    more = Markup("\n<b>{}{} more characters</b>").format(least, f"{left:,}") if left > 0 else ""
    return Markup("<pre class=json>{}{}</pre>").format(_coloured(text), more)


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
        case {"old_string": str(old), "new_string": str(new), **rest}:
            parts.append(changed(old, new))
        case _:
            pass
    rows = [Markup("<dt>{}</dt><dd>{}</dd>").format(plain(str(key)), _argument(value)) for key, value in rest.items()]
    listed = [Markup("<dl class=arguments>{}</dl>").format(Markup("").join(rows))] if rows else []
    return Markup("").join([*listed, *parts])


def changed(old: str, new: str) -> Markup:
    """What ``new`` says differently from ``old``, by lines."""
    return _diff(_compared(old, new))


def as_markdown(kind: str, title: str, text: str) -> str:
    """A message or a block for a page of somebody else's: prose as it is, calls and results between fences."""
    text = plain(text)
    if kind not in ("call", "result"):
        return text
    laid_out = _laid_out(text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    name = " ".join(plain(title).split()).replace("`", "'")
    return f"`{name}` ({kind})\n\n{fence}{'json' if laid_out is not None else ''}\n{laid_out or text}\n{fence}\n"


def clipped(text: str, limit: int | None = LONGEST) -> str:
    """The beginning of ``text``; all of it without a ``limit``."""
    return text if limit is None or len(text) <= limit else text[:limit]


def excerpt(text: str, limit: int = 320) -> str:
    """The first words of ``text``, on one line."""
    line = " ".join(plain(text[: limit * 4]).split())
    return line if len(line) <= limit else line[:limit].rstrip() + "…"


def pictures(value: Payload) -> Iterator[tuple[str, str]]:
    """The pictures that are in ``value`` itself: what each is called, and its address, which holds all of it."""
    for part in value.parts if isinstance(value, Message) else (value,):
        if isinstance(part, Media) and (address := data_address(part.media_type, part.data)):
            yield part.name or part.media_type, address


def highlighted(text: str, words: Sequence[str]) -> Markup:
    """``text`` with ``words`` marked, upper and lower case alike."""
    text = " ".join(plain(text).split())
    if not words:
        return escape(text)
    pieces = re.split(f"({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE)
    marked = (Markup("<mark>{}</mark>").format(piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces))
    return Markup("").join(marked)


def marked(html: Markup, words: Sequence[str]) -> Markup:
    """Markup of this module with ``words`` marked in its text, upper and lower case alike."""
    if not words:
        return html
    # names of characters are one character each: nothing in them is a word
    sought = re.compile(f"&[#\\w]+;|({'|'.join(re.escape(str(escape(word))) for word in words)})", re.IGNORECASE)
    pieces = re.split(r"(<[^>]*>)", str(html))
    pieces[::2] = [_sub_found(sought, piece) for piece in pieces[::2]]
    return Markup("").join(map(Markup, pieces))


def _sub_found(sought: re.Pattern[str], piece: str) -> str:
    return sought.sub(lambda found: f"<mark>{found[1]}</mark>" if found[1] else found[0], piece)


def _argument(value: Any) -> Markup:
    if isinstance(value, str):
        return Markup("<pre>{}</pre>").format(plain(value)) if "\n" in value else Markup("{}").format(plain(value))
    return as_json(value) if isinstance(value, dict | list) else Markup("{}").format(json.dumps(value))


def _laid_out(text: str) -> str | None:
    if text[:1] not in ("{", "["):
        return None
    try:
        # what is deep grows with each line that is indented
        room = max(4 * LONGEST, 3 * len(text))
        laid_out, length = _begun(json.loads(text), room, room)
    except (ValueError, RecursionError):
        return None
    return laid_out if length <= room else None


def _begun(value: Any, room: int, counted: int) -> tuple[str, int]:
    """The first ``room`` characters of ``value`` laid out, and how many there are; none are made beyond ``counted``."""
    kept: list[str] = []
    length = 0
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(value):
        if length < room:
            kept.append(piece[: room - length])
        length += len(piece)
        if length > counted:
            break
    return "".join(kept), length


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


def _diff(lines: Sequence[str]) -> Markup:
    """Changed lines, marked; many of them folded."""
    kinds = {"+": "ins", "-": "del"}
    out = []
    for line in lines:
        tag = kinds.get(line[:1])
        text = escape(plain(line))
        out.append(Markup(f"<{tag}>{{}}</{tag}>").format(text) if tag else text)
    written = Markup("<pre class=diff>{}</pre>").format(Markup("\n").join(out))
    if len(lines) <= _MOST_LINES:
        return written
    more = f"{len(lines):,} lines of a change"
    return Markup("<details><summary><span class=label>{}</span></summary>{}</details>").format(more, written)


def _compared(old: str, new: str) -> list[str]:
    """What is changed, with some lines around it. What is alike at both ends is not looked at; what is left is compared
    where that costs little, else it is all taken out and put in.
    """
    before, after = _split(old), _split(new)
    begin = 0
    while begin < min(len(before), len(after)) and before[begin] == after[begin]:
        begin += 1
    end = 0
    while end < min(len(before), len(after)) - begin and before[-1 - end] == after[-1 - end]:
        end += 1
    left, right = before[begin : len(before) - end], after[begin : len(after) - end]
    if len(left) + len(right) <= _MOST_LINES and sum(map(len, left)) + sum(map(len, right)) <= _LONGEST_DIFF:
        first, last = max(begin - 3, 0), max(end - 3, 0)
        lines = difflib.unified_diff(
            before[first : len(before) - last], after[first : len(after) - last], lineterm="", n=3
        )
        return [*lines][3:]
    around = [f" {line}" for line in before[max(begin - 3, 0) : begin]]
    behind = [f" {line}" for line in before[len(before) - end :][:3]]
    return [*around, *(f"-{line}" for line in left), *(f"+{line}" for line in right), *behind]


def _visible(text: str) -> str:
    return text if text.isascii() else _UNSEEN.sub("\ufffd", text)


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
