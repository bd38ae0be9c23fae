"""What a tool call may do: it runs, is denied, or is put to a person.

Decides from mode and rules alone. The mode is for what no rule speaks of; a rule that denies beats every other one,
else the later rule wins; in ``read_only`` rules can only tighten. Must not: know what a tool is for beyond its effect.

The patterns of rules are about the ``command`` of a call, else its ``path``, else its arguments as they were written. A
rule that allows by an asterisk is for simple commands and for paths without ``..``; one that asks or denies is also
about each part of a compound command and about every ending of a path. Rules that deny commands are a railing, not a
wall: there are many ways to write a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Effect as Effect
from thinkback.settings.permissions import Action, Rule, is_like, literal
from thinkback.turn.commands import METACHARACTERS, is_safe

Mode: TypeAlias = Literal["auto", "ask", "read_only"]

# The tool whose ``command`` is a line for a shell.
SHELL = "shell"
_PARTS = re.compile(r"[;&|\n]+")


class Permissions(msgspec.Struct, frozen=True):
    """What the settings say."""

    mode: Mode = "auto"
    rules: tuple[Rule, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """What is to happen with a call, and who says so; nobody spoke where ``by`` is empty. ``rule`` is the one that did.

    ``by`` command: it only reads, as its words show.
    """

    action: Action
    effect: Effect = "runs"
    by: Literal["", "mode", "rule", "command"] = ""
    reason: str = ""
    rule: Rule | None = None


class PermissionRequest(msgspec.Struct, frozen=True):
    """What a person is asked: whether ``call`` may run, whose tool has this ``effect``, and why that is asked.

    ``always`` is the rule that an answer of "always" adds to the session.
    """

    call: ToolCall
    effect: Effect
    reason: str
    always: str


class PermissionAnswer(msgspec.Struct, frozen=True):
    """What the person says. ``always`` is for such calls of this session from now on; ``note`` is told to the model."""

    allow: bool
    always: bool = False
    note: str = ""


class _Subject(NamedTuple):
    """What patterns are about."""

    kind: Literal["command", "path", "arguments"]
    text: str


def decide(permissions: Permissions, call: ToolCall, effect: Effect) -> Verdict:
    """What is to happen with ``call`` of a tool with this ``effect``."""
    subject = _subject(call)
    speaking = [rule for rule in permissions.rules if _is_about(rule, call.name, subject)]
    denying = next((rule for rule in speaking if rule.action == "deny"), None)
    rule = denying or (speaking[-1] if speaking else None)
    safe = call.name == SHELL and subject.kind == "command" and is_safe(subject.text)
    if permissions.mode == "read_only" and effect != "reads" and not safe and denying is None:
        return Verdict("deny", effect, "mode", f"permissions.mode is read_only, and {call.name} {effect}")
    if rule is not None:
        return Verdict(rule.action, effect, "rule", f"the rule {rule}", rule)
    if permissions.mode == "auto":
        return Verdict("allow", effect)
    if effect == "reads":
        return Verdict("allow", effect, "mode", "the tool only reads")
    if safe:
        return Verdict("allow", effect, "command", "the command only reads")
    return Verdict("ask", effect, "mode", f"permissions.mode is ask, and {call.name} {effect}")


def always(call: ToolCall, verdict: Verdict) -> Rule:
    """The rule that lets such calls run without asking: this very command, else what asked, no more than it did."""
    subject = _subject(call)
    by_pattern = verdict.rule is not None and verdict.rule.pattern is not None
    if subject.kind == "command" or by_pattern:
        return Rule(call.name, "allow", literal(subject.text))
    return Rule(call.name, "allow")


def with_rule(rules: Sequence[Rule], new: Rule, asked: Rule | None) -> tuple[Rule, ...]:
    """``rules`` with ``new`` behind the one that ``asked``, or before all where none did: stronger ones stay so."""
    at = rules.index(asked) + 1 if asked in rules else 0
    return (*rules[:at], new, *rules[at:])


def _is_about(rule: Rule, name: str, subject: _Subject) -> bool:
    if not is_like(rule.tool, name):
        return False
    if rule.pattern is None:
        return True
    if rule.action == "allow":
        return is_like(rule.pattern, subject.text) and (_is_plain(subject) or not rule.is_wide)
    return any(is_like(rule.pattern, text, any_case=True) for text in _wordings(subject))


def _is_plain(subject: _Subject) -> bool:
    """Whether an asterisk may stand for a part of it: nothing in it leads elsewhere."""
    if subject.kind == "path":
        return ".." not in subject.text.replace("\\", "/").split("/")
    return subject.kind != "command" or not METACHARACTERS.search(subject.text)


def _wordings(subject: _Subject) -> Iterator[str]:
    """The texts that may say the same."""
    yield subject.text
    if subject.kind == "command":
        yield from (" ".join(part.split()) for part in _PARTS.split(subject.text))
    elif subject.kind == "path":
        parts = _normal(subject.text.replace("\\", "/"))
        yield from ("/".join(parts[at:]) for at in range(len(parts)))


def _normal(path: str) -> list[str]:
    """The parts of ``path`` without ``.`` and with ``..`` followed."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return parts


def _subject(call: ToolCall) -> _Subject:
    try:
        arguments: object = canonical.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        return _Subject("arguments", call.arguments)
    if isinstance(arguments, dict):
        command, path = arguments.get("command"), arguments.get("path")
        if isinstance(command, str):
            return _Subject("command", command)
        if isinstance(path, str):
            return _Subject("path", path)
    return _Subject("arguments", call.arguments)
