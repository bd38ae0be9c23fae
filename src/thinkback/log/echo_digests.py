"""What a client sees of a conversation and sends back, as digests: by them it is recognised (docs/format.md).

Promises: a response and its echo have the same value, whatever dialects they were read from and whatever a client does
to what it keeps: arguments written anew, white space trimmed, parts merged, ids dropped, system prompts moved, cache
marks and reasoning added or left out. What anybody else said is the same only word for word. Must not: look anything
up.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, content_slice
from thinkback.model.commits import Commit, Draft, Erased, Message, Response, surviving
from thinkback.model.think_tags import Where, is_plain, outside, untagged
from thinkback.model.waiting import Waiting

Speaker: TypeAlias = Literal["user", "assistant", "tool"]
WINDOW = 4
SIZE = 16

_VISIBLE, _CHAIN, _WINDOW = b"thinkback visible 1\n", b"thinkback chain 1\n", b"thinkback window 1\n"
_CALL, _RESPONSE = b"thinkback call 1\n", b"thinkback response 1\n"
_NARROWED, _CUT = b"thinkback narrowed 1\n", b"thinkback cut 1\n"
_SPEAKERS: dict[str, Speaker] = {
    "user": "user",
    "tool_result": "tool",
    "response": "assistant",
    "reasoning": "assistant",
    "assistant": "assistant",
    "tool_call": "assistant",
    "other": "assistant",
    "media": "assistant",
}
_SHARED = 6
# Where whole numbers of a program that has only floating-point ones end.
_EXACT = 2**53
_TO_STANDARD = str.maketrans("-_", "+/", "= \t\r\n")


class EchoedMessage(msgspec.Struct, frozen=True, gc=False):
    """A message as a client sees it; neighbours of one speaker are one.

    ``value`` is the digest of its normal form (16 bytes), ``at`` are the places of its drafts, ``responses`` the ids of
    the responses in it. ``calls`` are what ``of_call`` takes: each call with its id, as the id alone may be any host's.
    ``others`` are its values where tags in it are read in other ways, if that makes a difference: a host may have been
    said to think anywhere in an answer, and tags were once read in one case only.
    """

    speaker: Speaker
    value: bytes
    calls: tuple[str, ...]
    at: tuple[int, ...]
    responses: tuple[str, ...]
    others: tuple[bytes, ...] = ()


def echoed_messages(drafts: Sequence[Draft]) -> list[EchoedMessage]:
    """The messages of a history. Left out are the system, tools, records and edits, responses that did not complete,
    because nobody was given them to keep, and those in which nothing is visible.
    """
    messages: list[EchoedMessage] = []
    called: Sequence[ToolCall] = ()
    for run in _runs(_units(drafts)):
        calls: list[str] = []
        others: tuple[bytes, ...] = ()
        if run.speaker == "assistant":
            called = run.calls
            made: list[Any] = []
            for call in called:
                source = _arguments(call.arguments)
                made.append([call.name, source])
                if call.id:
                    calls.append(f"{call.id}\n{call.name}\n{source}")
            form: list[Any] = ["assistant", "".join(run.texts), *made]
            if run.others:
                read = ["".join(texts) for texts in zip(*run.others, strict=True)]
                others = tuple(_digest(_VISIBLE, _encoded(["assistant", text, *made])) for text in read)
        elif run.speaker == "user":
            form = _user(run.values)
        else:
            form = _tool(run.values, called)
        value = _digest(_VISIBLE, _encoded(form))
        messages.append(EchoedMessage(run.speaker, value, tuple(calls), tuple(run.at), tuple(run.responses), others))
    return messages


def message_starts(line: Iterable[Draft | Commit]) -> Iterator[int]:
    """The place in ``line`` at which each of its messages (see ``echoed_messages``) begins, one by one."""
    return (run.at[0] for run in _runs(_units(line)))


def readings(messages: Sequence[EchoedMessage]) -> list[list[bytes]]:
    """The values of ``messages`` as they are, and in each other way in which tags may have been read, if any does."""
    values = [message.value for message in messages]
    if not any(message.others for message in messages):
        return [values]
    others = [[message.others[at] if message.others else message.value for message in messages] for at in _WAYS]
    return [values, *others]


def drafts_of(commits: Iterable[Commit]) -> list[Draft]:
    """Stored commits in the form in which ``echoed_messages`` takes them."""
    return [Draft(commit.kind, commit.value, commit.response, commit.index, commit.edit) for commit in commits]


def chain(values: Iterable[bytes], last: bytes = b"") -> list[bytes]:
    """For each message a digest of all from the first one up to it; ``last`` is that of the message before them."""
    links: list[bytes] = []
    for value in values:
        last = _beside(value, _digest(_CHAIN, last + value))
        links.append(last)
    return links


def windows(values: Sequence[bytes]) -> list[bytes]:
    """For each message a digest of it and the three before it, as far as there are any."""
    return [window(values[max(0, at - WINDOW + 1) : at + 1]) for at in range(len(values))]


def window(values: Sequence[bytes]) -> bytes:
    """The digest of the last of these messages together with those before it."""
    return _beside(values[-1], _digest(_WINDOW, b"".join(values)))


def narrowed(link: bytes, marks: bytes) -> bytes:
    """The digest by which a response is found at ``link``, a digest of ``chain``, among those of equal ``marks``."""
    return _beside(link, _digest(_NARROWED, link + marks))


def cut(link: bytes) -> bytes:
    """The digest by which a response is found that broke off behind the messages of ``link``."""
    return _beside(link, _digest(_CUT, link))


def call_ids(messages: Sequence[EchoedMessage]) -> bytes:
    """A digest of the ids of all calls in ``messages``; nothing where there are none."""
    ids = [call.partition("\n")[0] for message in messages for call in message.calls]
    return b"s" + _digest(_CALL, _utf8("\n".join(ids))) if ids else b""


def visible_text(drafts: Sequence[Draft]) -> str:
    """The text that a client sees of the model's messages in ``drafts``, also of one that broke off, without white
    space and tagged reasoning.
    """
    said = "".join(draft.value.text for draft in drafts if draft.kind == "assistant" and isinstance(draft.value, Text))
    return _unspaced(untagged(said, edition=1))


def visible_calls(drafts: Sequence[Draft]) -> list[tuple[str, str]]:
    """The names and normal arguments of the model's calls in ``drafts``, also of a response that broke off."""
    calls = (draft.value for draft in drafts if isinstance(draft.value, ToolCall))
    return [(call.name, _arguments(call.arguments)) for call in calls]


def of_call(call: str) -> bytes:
    """The digest by which the response is found that made a call (one of ``EchoedMessage.calls``)."""
    return _digest(_CALL, _utf8(call))


def of_response(id: str) -> bytes:
    """The digest by which a response is found under the id that its client was given."""
    return _digest(_RESPONSE, _utf8(id))


class _Run:
    """A message under construction: what one speaker says before another does."""

    __slots__ = ("at", "calls", "others", "responses", "slices", "speaker", "texts", "values")

    def __init__(self, speaker: Speaker) -> None:
        self.speaker = speaker
        self.at: list[int] = []
        self.values: list[Any] = []
        self.texts: list[str] = []
        self.slices: list[str] = []
        self.others: list[tuple[str, ...]] = []
        self.calls: list[ToolCall] = []
        self.responses: list[str] = []

    def join(self, other: _Run) -> None:
        """Go on with what the same speaker says next."""
        if self.others or other.others:
            mine = self.others or [(text,) * _READINGS for text in self.texts]
            self.others = [*mine, *(other.others or [(text,) * _READINGS for text in other.texts])]
        self.at += other.at
        self.values += other.values
        self.texts += other.texts
        self.calls += other.calls
        self.responses += other.responses


def _units(drafts: Iterable[Draft | Commit]) -> Iterable[_Run]:
    """Each message, response and result for itself."""
    unit: _Run | None = None
    response, whole = "", True
    for at, draft in enumerate(drafts):
        speaker = _SPEAKERS.get(draft.kind)
        if speaker is None or draft.edit:
            continue
        if speaker != "assistant":
            if unit is not None:
                yield unit
                unit = None
            one = _Run(speaker)
            one.at.append(at)
            one.values.append(surviving(draft.value) if type(draft.value) is Erased else draft.value)
            yield one
            continue
        value = draft.value
        if unit is None or draft.kind == "response" or draft.response != response or not response:
            if unit is not None:
                yield unit
            unit = _Run("assistant")
            response = draft.response
            whole = not isinstance(value, Response) or value.complete
            if response and whole:
                unit.responses.append(response)
        if not whole:
            continue
        unit.at.append(at)
        if type(value) is Erased:
            value = surviving(value)
        if type(value) is Text:
            unit.texts.append(value.text)
            unit.slices.append(value.text)
        elif type(value) is ThinkingBlock and value.source_field == "content" and not value.wire:
            unit.slices.append(content_slice(value))
        elif type(value) is ToolCall:
            unit.calls.append(value)
    if unit is not None:
        yield unit


def _runs(units: Iterable[_Run]) -> Iterable[_Run]:
    """Neighbours of one speaker as one; what has nothing visible in it is not there."""
    run: _Run | None = None
    for unit in units:
        if unit.speaker == "assistant":
            text = _unspaced(untagged("".join(unit.texts), edition=1))
            content = "".join(unit.slices)
            if not is_plain(content):
                others = tuple(_unspaced(read(content)) for read in _OTHERWISE)
                unit.others = [others] if any(other != text for other in others) else []
            if not (text or unit.calls):
                continue
            unit.texts = [text]
        if run is not None and run.speaker == unit.speaker:
            run.join(unit)
            continue
        if run is not None:
            yield run
        run = unit
    if run is not None:
        yield run


def _unspaced(text: str) -> str:
    return "".join(text.split())


def _shown_text(content: str, where: Where) -> str:
    """The first normal form of what is left of ``content`` where its tags are read by today's rules."""
    return untagged(outside(content, where), edition=1)


# How else an answer may have been read when its response was recorded: by each edition of the rules for tags that there
# was, and with each of its settings.
_OTHERWISE: tuple[Callable[[str], str], ...] = (
    functools.partial(untagged, edition=1),
    functools.partial(untagged, where="start", edition=2),
    functools.partial(untagged, where="anywhere", edition=2),
    functools.partial(_shown_text, where="start"),
    functools.partial(_shown_text, where="lines"),
    functools.partial(_shown_text, where="anywhere"),
)
_READINGS = len(_OTHERWISE)
_WAYS = range(_READINGS)


def _user(values: Iterable[object]) -> list[Any]:
    """Texts and parts in order; texts side by side are one."""
    form: list[Any] = ["user"]
    texts: list[str] = []
    for value in values:
        if not isinstance(value, Message):
            form += [*_joined(texts), ["erased"]]
            texts = []
            continue
        if not value.parts:
            texts.append(value.text)
        for part in value.parts:
            if isinstance(part, Text):
                texts.append(part.text)
            else:
                form += [*_joined(texts), _part(part)]
                texts = []
    return [*form, *_joined(texts)]


def _joined(texts: Iterable[str]) -> list[str]:
    text = _lines("".join(texts))
    return [text] if text else []


def _lines(text: str) -> str:
    """Text without white space at its ends; a line ends in one way."""
    text = text.strip()
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _part(part: Media | Unknown) -> list[str]:
    if isinstance(part, Media) and (part.data or part.url):
        said = part.data.translate(_TO_STANDARD) if part.data else part.url
        return ["media", canonical.digest(_utf8(said))]
    return ["part", _json(part.wire) or _lines(part.wire)]


def _tool(values: Iterable[object], called: Sequence[ToolCall]) -> list[Any]:
    """Results in the order of the calls that they answer; behind them those of unknown calls."""
    waiting = Waiting[int]()
    for at, call in enumerate(called):
        waiting.add(at, (call.id, call.name), call.id)
    form: list[tuple[int, str]] = []
    for value in values:
        if isinstance(value, ToolResult):
            place = waiting.take((value.id, value.name), value.id)
            form.append((len(called) if place is None else place, _result(value.content)))
        else:
            form.append((len(called), "erased"))
    return ["tool", *sorted(form)]


def _result(content: str) -> str:
    """An object or a list as canonical JSON, else the text: also that of text parts, or of an object around it."""
    text = _lines(content)
    if text[:1] not in ("{", "["):
        return text
    value = _decoded(text)
    inner = _text_in(value)
    return text if value is None else _canonical(_unmarked(value)) if inner is None else _result_inside(inner)


def _result_inside(text: str) -> str:
    """A text that may be JSON itself; what stands around it is looked through once."""
    text = _lines(text)
    return (_json(text) if text[:1] in ("{", "[") else "") or text


def _text_in(value: object) -> str | None:
    """What a list of nothing but texts says, or an object that only says whether a text is a result or an error."""
    if isinstance(value, dict) and len(value) == 1:
        text = next((value[name] for name in ("result", "output", "error") if name in value), None)
        return text if isinstance(text, str) else None
    if isinstance(value, list) and value:
        said = [part["text"] for part in value if isinstance(part, dict) and "type" in part and "text" in part]
        return "".join(said) if len(said) == len(value) and all(isinstance(text, str) for text in said) else None
    return None


def _arguments(source: str) -> str:
    """An object as canonical JSON, blank ones as an empty one. Any other text is what it is, also inside an object
    where a dialect takes nothing else.
    """
    value = _decoded(source) if source.strip() else {}
    if not isinstance(value, dict):
        return _lines(source)
    text = value.get("arguments")
    return _lines(text) if isinstance(text, str) and len(value) == 1 else _canonical(value)


def _json(source: str) -> str:
    """Canonical JSON without cache marks; nothing where ``source`` is none."""
    value = _decoded(source)
    return "" if value is None else _canonical(_unmarked(value))


def _unmarked(value: Any) -> Any:
    """A part, or a list of parts, without cache marks."""
    if isinstance(value, list):
        return [_unmarked(part) if isinstance(part, dict) else part for part in value]
    return {key: kept for key, kept in value.items() if key != "cache_control"} if isinstance(value, dict) else value


def _number(source: str) -> float | int:
    """A number as a program reads it that knows no whole ones, and writes them without a point."""
    value = float(source)
    if not math.isfinite(value):
        raise ValueError("no number")
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(float_hook=_number)


def _decoded(source: str) -> Any:
    try:
        return _decoder.decode(source)
    except (ValueError, RecursionError):
        return _decoded_with_surrogates(source)


def _decoded_with_surrogates(source: str) -> Any:
    """What the usual reader refuses may be JSON with half a character in it."""
    try:
        return canonical.decode(source)
    except ValueError:
        return None


def _encoded(form: list[Any]) -> bytes:
    try:
        return _encoder.encode(form)
    except UnicodeEncodeError:
        return canonical.encode(_whole(form))


def _whole(form: Any) -> Any:
    """Two halves of a character that came in two pieces are one."""
    if isinstance(form, list | tuple):
        return [_whole(each) for each in form]
    return canonical.whole(form) if isinstance(form, str) else form


def _canonical(value: object) -> str:
    return canonical.encode(value).decode()


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return canonical.whole(text).encode("utf-8", "surrogatepass")


def _beside(value: bytes, digest: bytes) -> bytes:
    """A digest that lies beside others of the same message in an ordered index: one page changes, not one for each."""
    return value[:_SHARED] + digest[:-_SHARED]


def _digest(domain: bytes, data: bytes) -> bytes:
    return hashlib.sha256(domain + data).digest()[:SIZE]
