"""JSON with comments and trailing commas: reads it, and changes one member of an object at a time.

Text in, text out; nothing but the member and its comma is touched. Promises: what stands twice on the way to a member
is refused, because programs differ in which of the two holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from thinkback.cli.connect.source import Damaged, Span, line_of, newline_of

_SPACE = " \t\r\n"
_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_WORD = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_DEEPEST = 100


class Node(NamedTuple):
    """A value and where it stands; ``members`` are those of an object, ``None`` elsewhere."""

    start: int
    end: int
    value: object
    members: tuple[Member, ...] | None = None


class Member(NamedTuple):
    """One of an object: where its key begins, and the place of the comma behind it, or -1."""

    key: str
    start: int
    node: Node
    comma: int


def read(text: str) -> dict[str, object]:
    """The object that ``text`` is; an empty text is an empty object. Raises ``Damaged``."""
    if not text.strip(_SPACE):
        return {}
    value = _document(text).value
    assert isinstance(value, dict)
    return value


def span(text: str, path: Sequence[str]) -> Span | None:
    """Where the value at ``path`` stands. Raises ``Damaged``."""
    node: Node = _document(text) if text.strip(_SPACE) else Node(0, 0, {}, ())
    for key in path:
        found = _member(text, node, key)
        if found is None:
            return None
        node = found.node
    return Span(node.start, node.end)


def put(text: str, path: Sequence[str], value: object) -> str:
    """``text`` with the member at ``path`` set, made with the objects above it where it is not there."""
    if not text.strip(_SPACE):
        text = f"{{}}{newline_of(text)}"
    node, above = _document(text), 0
    while above < len(path) - 1:
        found = _member(text, node, path[above])
        if found is None:
            break
        node, above = found.node, above + 1
    _members(text, node)
    for key in reversed(path[above + 1 :]):
        value = {key: value}
    present = _member(text, node, path[above])
    if present is not None:
        # what stands there is a value; replacing an object is nobody's wish here
        return text[: present.node.start] + _rendered(text, present.start, value) + text[present.node.end :]
    return _added(text, node, path[above], value)


def drop(text: str, path: Sequence[str]) -> str:
    """``text`` without the member at ``path``, which is there; comments stay."""
    node = _document(text)
    for key in path[:-1]:
        found = _member(text, node, key)
        assert found is not None
        node = found.node
    members = _members(text, node)
    at = next(index for index, member in enumerate(members) if member.key == path[-1])
    gone = members[at]
    start = len(text[: gone.start].rstrip(_SPACE))
    cuts = [(start, gone.node.end)]
    if gone.comma >= 0:
        cuts.append((gone.comma, gone.comma + 1))
    elif at:
        cuts.insert(0, (members[at - 1].comma, members[at - 1].comma + 1))
    for begin, end in reversed(cuts):
        text = text[:begin] + text[end:]
    return text


def _added(text: str, node: Node, key: str, value: object) -> str:
    members, newline = _members(text, node), newline_of(text)
    close = node.end - 1
    at = len(text[:close].rstrip(_SPACE))
    is_split = "\n" in text[node.start : node.end] or not members
    own = _indent_at(text, members[-1].start) if members else _indent_at(text, node.start) + _unit(text)
    inner = f"{json.dumps(key, ensure_ascii=False)}: {_json(value, own, _unit(text), newline, is_split)}"
    has_comma = bool(members) and members[-1].comma >= 0
    tail = "," if has_comma else ""
    if is_split:
        inner = f"{newline}{own}{inner}{tail}"
        if "\n" not in text[at:close]:
            inner += newline + _indent_at(text, node.start)
    else:
        inner = f" {inner}{tail}"
    text = text[:at] + inner + text[at:]
    if members and not has_comma:
        text = text[: members[-1].node.end] + "," + text[members[-1].node.end :]
    return text


def _rendered(text: str, at: int, value: object) -> str:
    return _json(value, _indent_at(text, at), _unit(text), newline_of(text), True)


def _json(value: object, indent: str, unit: str, newline: str, is_split: bool) -> str:
    if not is_split:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _indent_at(text: str, at: int) -> str:
    """The white space that the line of ``at`` begins with."""
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of indentation: that of the first line that has one."""
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return found[1] if found else "  "


def _members(text: str, node: Node) -> tuple[Member, ...]:
    if node.members is None:
        raise Damaged(line_of(text, node.start), "an object is expected here")
    return node.members


def _member(text: str, node: Node, key: str) -> Member | None:
    found = [member for member in _members(text, node) if member.key == key]
    if len(found) > 1:
        first, second = (line_of(text, member.start) for member in found[:2])
        raise Damaged(second, f"the key {key} stands here and on line {first}: remove one")
    return found[0] if found else None


def _document(text: str) -> Node:
    start = _gap(text, 0)
    node = _node(text, start, 0)
    if _gap(text, node.end) != len(text):
        raise Damaged(line_of(text, _gap(text, node.end)), "something stands behind the end of the object")
    _members(text, node)
    return node


def _gap(text: str, at: int) -> int:
    """The place behind white space and comments."""
    found = _GAP.match(text, at)
    assert found is not None
    if text.startswith("/*", found.end()):
        raise Damaged(line_of(text, found.end()), "a comment does not end")
    return found.end()


def _node(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise Damaged(line_of(text, at), f"values are nested more than {_DEEPEST} deep")
    if text.startswith("{", at):
        return _object(text, at, depth)
    if text.startswith("[", at):
        return _array(text, at, depth)
    found = _STRING.match(text, at) or _WORD.match(text, at)
    if found is None:
        raise Damaged(line_of(text, at), "a value is expected here" if at < len(text) else "the text ends too early")
    return Node(at, found.end(), json.loads(found[0]))


def _object(text: str, at: int, depth: int) -> Node:
    members: list[Member] = []
    here = _gap(text, at + 1)
    while not text.startswith("}", here):
        if members and members[-1].comma < 0:
            raise _unexpected(text, here, "a comma or } is expected here")
        name = _STRING.match(text, here)
        if name is None:
            raise _unexpected(text, here, "a key in double quotes or } is expected here")
        colon = _gap(text, name.end())
        if not text.startswith(":", colon):
            raise _unexpected(text, colon, "a colon is expected here")
        node = _node(text, _gap(text, colon + 1), depth + 1)
        behind = _gap(text, node.end)
        comma = behind if text.startswith(",", behind) else -1
        members.append(Member(json.loads(name[0]), here, node, comma))
        here = _gap(text, behind + 1) if comma >= 0 else behind
    return Node(at, here + 1, {member.key: member.node.value for member in members}, tuple(members))


def _array(text: str, at: int, depth: int) -> Node:
    values: list[object] = []
    here, is_ended = _gap(text, at + 1), True
    while not text.startswith("]", here):
        if not is_ended:
            raise _unexpected(text, here, "a comma or ] is expected here")
        node = _node(text, here, depth + 1)
        values.append(node.value)
        here = _gap(text, node.end)
        is_ended = text.startswith(",", here)
        here = _gap(text, here + 1) if is_ended else here
    return Node(at, here + 1, values)


def _unexpected(text: str, at: int, reason: str) -> Damaged:
    return Damaged(line_of(text, at), reason if at < len(text) else "the text ends too early")
