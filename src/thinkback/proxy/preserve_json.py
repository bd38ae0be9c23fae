"""A request that was planned, in the bytes of the client that sent it: white space, order, numbers and escapes stay.

Promises: the result says what the plan says, as JSON; where the client says the same, its own bytes stand. Cache marks
are the client's (the log has those of another day). Of a message, a part, an item or a call that the plan says too, the
client's are all members that the plan has no word for; a text is the same as a string and in parts. With nothing to
change the result is what the client sent. Must not: know what a request means. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

# A body, its messages, one message, its content, one part, a call in it: what is deeper is the client's as a whole, or
# the plan's.
_LEVELS = 7
# How far ahead the client's version of an element is looked for, where the plan left out what is before it.
_AHEAD = 16
_MARK = "cache_control"
# What a client says of a message that providers give and the log has not: who speaks, or that it is to be continued.
_OF_A_MESSAGE = frozenset({"name", "partial", "prefix"})
# The members of a body that are the conversation.
_MESSAGES = frozenset({"contents", "input", "messages"})
# What a program or a model says: it is the plan's as a whole.
_SAID = frozenset({"args", "arguments", "input", "output", "response"})
# What the plan has a word for: where it leaves one out, that was decided. All else is of no account to it.
_UNDERSTOOD = _SAID | {
    "call_id",
    "content",
    "data",
    "function",
    "functionCall",
    "id",
    "parts",
    "role",
    "status",
    "summary",
    "text",
    "tool_call_id",
    "tool_calls",
    "type",
}
# By these in its name, or in one inside it, a member is known that may be reasoning: that goes as it was decided.
_OF_REASONING = re.compile("encrypted_content|opaque|reason|redacted|signature|think|thought", re.IGNORECASE)
_CALLS = ("function", "functionCall")
_OF_PROGRAMS = tuple(Raw(b'"%b"' % role) for role in (b"developer", b"function", b"system", b"tool", b"user"))
_TEXTS = frozenset({"input_text", "output_text", "text"})
_SORT = ("role", "type", "id")
_OBJECT, _LIST = b"{"[0], b"["[0]
_NULL = Raw(b"null")
_members = msgspec.json.Decoder(dict[str, Raw])
_elements = msgspec.json.Decoder(list[Raw])
_values = msgspec.json.Decoder()
_in_order = msgspec.json.Encoder()
_REFUSED = (msgspec.DecodeError, UnicodeError, RecursionError)
_UNREAD = object()
_SPACE = b" \t\r\n"
_space = re.compile(r"[ \t\r\n]*")
_stdlib = json.JSONDecoder()


class _Place(NamedTuple):
    """Where something stands: among the messages or not; ``withheld`` are members of theirs that are left out."""

    is_inside: bool
    withheld: Collection[str]


def preserved(client: bytes, planned: bytes, withheld: Collection[str] = ()) -> bytes:
    """What ``planned`` says, in the bytes of ``client`` wherever they say the same; both are JSON.

    ``withheld`` are members of the client's messages that the place must not get.
    """
    theirs, ours = Raw(client.strip(_SPACE)), Raw(planned.strip(_SPACE))
    try:
        written = _spelled(theirs, ours, _LEVELS, _Place(False, withheld)) if client else ours
    except (ValueError, RecursionError):  # what the client sent is no JSON
        return planned
    return client if written is theirs else bytes(written)


def _spelled(client: Raw, planned: Raw, levels: int, place: _Place) -> Raw:
    """``client`` itself where it says the same; among the messages its own members stay."""
    if client == planned:
        return client
    kind = memoryview(client)[0]
    if levels and kind == memoryview(planned)[0]:
        if kind == _OBJECT:
            return _merged(client, _object_of(client), _object_of(planned), levels - 1, place)
        if kind == _LIST:
            return _array(client, planned, levels - 1, place)
    return client if _are_equal(client, planned) else planned


def _merged(client: Raw, theirs: dict[str, Raw], ours: dict[str, Raw], levels: int, place: _Place) -> Raw:
    """The members that both have in the client's order, then those of the plan."""
    # What a program says goes as it wrote it, unless that was decided otherwise.
    if place.is_inside and theirs.get("role") in _OF_PROGRAMS:
        place = place._replace(is_inside=False)
    own = {_MARK, *(_OF_A_MESSAGE - ours.keys() if "role" in theirs else ())}
    own.update(_own_members(theirs, ours).difference(place.withheld) if place.is_inside else ())
    changed = theirs.keys() - own != ours.keys() - own
    members: dict[str, Raw] = {}
    for key, source in theirs.items():
        wanted = source if key in own else ours.get(key)
        if wanted is None:
            changed = True
            continue
        if source != wanted:
            is_first = levels == _LEVELS - 1
            if place.is_inside and key == "content" and _are_equal_texts(source, wanted):
                written = source
            else:
                deeper = 0 if place.is_inside and key in _SAID else levels
                written = _spelled(
                    source, wanted, deeper, place._replace(is_inside=place.is_inside or (is_first and key in _MESSAGES))
                )
            changed = changed or written is not source
            source = written
        members[key] = source
    if not changed:
        return client
    for key, source in ours.items():
        if key not in theirs and key != _MARK:
            members[key] = source
    try:
        return Raw(_in_order.encode(members))
    except UnicodeEncodeError:
        return Raw(b"{%b}" % b",".join(b"%b:%b" % (json.dumps(key).encode(), members[key]) for key in members))


def _own_members(theirs: dict[str, Raw], ours: dict[str, Raw]) -> set[str]:
    """What the client says beside that which the plan says too, and the plan has no word for.

    A member without a value says nothing: SDKs write such for what a response had no word of, and providers refuse it.
    """
    more = [
        key
        for key, source in theirs.items()
        if key not in ours and key not in _UNDERSTOOD and source != _NULL and not _OF_REASONING.search(key)
    ]
    if not more or not _is_version(_values_of(theirs), _values_of(ours)):
        return set()
    return {key for key in more if not _has_reasoning(_value(theirs[key]))}


def _values_of(members: dict[str, Raw]) -> dict[str, Any]:
    return {key: _value(source) for key, source in members.items()}


def _is_version(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether two objects make the same calls, and have the same content, or say the same text: the plan's perhaps
    behind reasoning.
    """
    content, text, calls = _content_of(theirs), _said_text(theirs), _called(theirs)
    if calls != _called(ours) or not (content or calls):
        return False
    return content == _content_of(ours) or (bool(text or calls) and _said_text(ours).endswith(text))


def _content_of(value: dict[str, Any]) -> Any:
    return next((value[key] for key in ("content", "parts", "text") if key in value), None)


def _said_text(value: dict[str, Any]) -> str:
    content = _content_of(value)
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(part["text"] for part in parts if _is_text(part) and not part.get("thought"))


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and str(part.get("type", "text")) in _TEXTS and isinstance(part.get("text"), str)


def _called(value: dict[str, Any]) -> list[str]:
    """The names of the calls in a message, a part or an item, or of a call itself."""
    names: list[str] = []
    for each in (value, *_elements_in(_content_of(value)), *_elements_in(value.get("tool_calls"))):
        held = [each.get(key) for key in _CALLS] if "role" in each else [each, *(each.get(key) for key in _CALLS)]
        names += [inner["name"] for inner in held if isinstance(inner, dict) and isinstance(inner.get("name"), str)]
    return names


def _elements_in(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _has_reasoning(value: Any) -> bool:
    """Whether a member anywhere in ``value`` may be reasoning."""
    if isinstance(value, dict):
        return any(_OF_REASONING.search(key) or _has_reasoning(held) for key, held in value.items())
    return isinstance(value, list) and any(map(_has_reasoning, value))


def _are_equal_texts(client: Raw, planned: Raw) -> bool:
    """Whether both are nothing but the same text, as a string or in parts."""
    one, other = _value(client), _value(planned)
    are_texts = all(
        isinstance(each, str) or (isinstance(each, list) and each != [] and all(map(_is_text, each)))
        for each in (one, other)
    )
    return are_texts and _said_text({"content": one}) == _said_text({"content": other})


def _array(client: Raw, planned: Raw, levels: int, place: _Place) -> Raw:
    """Equal beginnings and ends stand as they came; what is between is matched in order."""
    theirs, ours = _array_of(client), _array_of(planned)
    most = min(len(theirs), len(ours))
    before = 0
    while before < most and _are_equal(theirs[before], ours[before]):
        before += 1
    if before == len(theirs) == len(ours):
        return client
    after = 0
    while after < most - before and _are_equal(theirs[-1 - after], ours[-1 - after]):
        after += 1
    end = len(theirs) - after
    middle = _matched(theirs[before:end], ours[before : len(ours) - after], levels, place)
    return Raw(b"[%b]" % b",".join((*theirs[:before], *middle, *theirs[end:])))


class _Element:
    """An element that is compared with several others, and read once for all of them: there are thousands of these."""

    __slots__ = ("_members", "_plain", "source")

    def __init__(self, source: Raw) -> None:
        self.source = source
        self._members: dict[str, Raw] | None = None
        self._plain: Any = _UNREAD

    @property
    def plain(self) -> Any:
        """What it says without cache marks."""
        if self._plain is _UNREAD:
            value = _value(self.source)
            self._plain = _unmarked(value) if _may_be_marked(bytes(self.source)) else value
        return self._plain

    @property
    def members(self) -> dict[str, Raw]:
        """Of an object what it consists of."""
        if self._members is None:
            self._members = _object_of(self.source)
        return self._members


def _matched(client: Sequence[Raw], planned: Sequence[Raw], levels: int, place: _Place) -> list[Raw]:
    """``planned``, each in the bytes of the element of ``client`` that says the same, else of one that is alike."""
    theirs, ours = list(map(_Element, client)), list(map(_Element, planned))
    written: list[Raw] = []
    at = 0
    for here, source in enumerate(ours):
        if at == len(theirs):
            written.append(source.source)
            continue
        next_one = theirs[at]
        same = next_one.source == source.source
        found = next_one.source if same else _changed(next_one, source, levels, place)
        if found is None and (ahead := _find(source, theirs[at : at + _AHEAD])) is not None:
            at += ahead
            found = theirs[at].source
        # One that says what comes next was not changed: something was put in before it.
        if found is None and not (here + 1 < len(ours) and _say_the_same(next_one, ours[here + 1])):
            found = _changed(next_one, source, levels, place, for_sure=False)
        at += found is not None
        written.append(source.source if found is None else found)
    return written


def _find(source: _Element, ahead: Sequence[_Element]) -> int | None:
    return next((place for place, other in enumerate(ahead) if _say_the_same(other, source)), None)


def _changed(client: _Element, planned: _Element, levels: int, place: _Place, *, for_sure: bool = True) -> Raw | None:
    """``planned`` if it is another version of ``client``: of the same role or type, and for sure if more is the same.

    What is no object has no versions.
    """
    if not memoryview(client.source)[0] == memoryview(planned.source)[0] == _OBJECT:
        return None
    theirs, ours = client.members, planned.members
    same = {key for key, source in theirs.items() if ours.get(key) == source}
    alike = all(key in same or (key not in theirs and key not in ours) for key in _SORT)
    if not alike or (for_sure and not same.difference(_SORT) and not _share(client.plain, planned.plain)):
        return None
    return _merged(client.source, theirs, ours, levels - 1, place) if levels else planned.source


def _share(one: Any, other: Any) -> bool:
    """Whether two objects have a member in common that is more than their sort."""
    return any(key not in _SORT and other.get(key) == value for key, value in one.items())


def _are_equal(one: Raw, other: Raw) -> bool:
    """Whether two sources say the same, numbers however they are written; ``true`` is not 1."""
    return one == other or _say_the_same(_Element(one), _Element(other))


def _say_the_same(one: _Element, other: _Element) -> bool:
    if one.source == other.source:
        return True
    if memoryview(one.source)[0] != memoryview(other.source)[0] and not _are_numbers(one.source, other.source):
        return False
    if one.plain != other.plain:
        return False
    # A truth value is equal to a number, and is none.
    is_sure = not (_may_be_true(bytes(one.source)) or _may_be_true(bytes(other.source)))
    return is_sure or _have_equal_types(one.plain, other.plain)


def _may_be_marked(source: bytes) -> bool:
    return b'"cache_control"' in source


def _unmarked(value: Any) -> Any:
    """``value`` without cache marks, wherever they stand."""
    if isinstance(value, dict):
        return {key: _unmarked(held) for key, held in value.items() if key != _MARK}
    return [_unmarked(held) for held in value] if isinstance(value, list) else value


def _may_be_true(source: bytes) -> bool:
    return b"true" in source or b"false" in source


def _are_numbers(one: Raw, other: Raw) -> bool:
    return all(memoryview(source)[0] in b"-0123456789" for source in (one, other))


def _have_equal_types(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return all(_have_equal_types(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return all(map(_have_equal_types, one, other))
    return isinstance(one, bool) == isinstance(other, bool)


def _value(source: Raw) -> Any:
    """What msgspec refuses (half a surrogate pair, a number beyond all bounds), the standard library reads."""
    try:
        return _values.decode(source)
    except _REFUSED:
        return json.loads(bytes(source))


def _object_of(source: Raw) -> dict[str, Raw]:
    """The members of an object as they are written; of a key that stands twice the last."""
    try:
        return _members.decode(source)
    except _REFUSED:
        return dict(_written(bytes(source), "}"))


def _array_of(source: Raw) -> list[Raw]:
    try:
        return _elements.decode(source)
    except _REFUSED:
        return [value for _, value in _written(bytes(source), "]")]


def _written(source: bytes, end: str) -> list[tuple[str, Raw]]:
    """The elements or members of ``source`` as they are written; of an element the key is empty."""
    json.loads(source)  # so that all below stands where it must
    text = source.decode("utf-8", "surrogatepass")
    found: list[tuple[str, Raw]] = []
    at = _past_space(text, _past_space(text, 0) + 1)
    while text[at] != end:
        key = ""
        if end == "}":
            key, at = _stdlib.raw_decode(text, at)
            at = _past_space(text, _past_space(text, at) + 1)
        _, stop = _stdlib.raw_decode(text, at)
        found.append((key, Raw(text[at:stop].encode("utf-8", "surrogatepass"))))
        at = _past_space(text, stop)
        if text[at] == ",":
            at = _past_space(text, at + 1)
    return found


def _past_space(text: str, at: int) -> int:
    found = _space.match(text, at)
    return found.end() if found else at
