"""What a tool call may do: it runs, is denied, or is put to a person.

Decides from mode and rules alone. The mode is for what no rule speaks of; a rule that denies beats every other one,
else the later rule wins; in ``read_only`` rules can only tighten. Must not: know what a tool is for beyond its effect.

The patterns of rules are about the ``command`` of a call, else its ``path``, else its arguments as they were written. A
rule that allows by an asterisk is for simple commands and for paths without ``..``; one that asks or denies is also
about each part of a compound command, about every ending of a path, and about a path beside a command. Rules that deny
commands are a railing, not a wall: there are many ways to write a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Effect as Effect
from thinkback.settings.permissions import Action, Rule, is_like, literal

Mode: TypeAlias = Literal["auto", "ask", "read_only"]

# The tool whose ``command`` is a line for a shell.
SHELL = "shell"
_QUOTING = re.compile(r"[\\'\"]")
_BEFORE = re.compile(r"\w+=.*|\$|!|command|builtin|exec|env|nice|nohup|sudo|time|then|do|else|xargs", re.DOTALL)
_PARTS = re.compile(r"[;&|\n\r(){}`]+")


class Permissions(msgspec.Struct, frozen=True):
    """What the settings say."""

    mode: Mode = "auto"
    rules: tuple[Rule, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """What is to happen with a call, and who says so; nobody spoke where ``by`` is empty. ``rule`` is the one that did.

    ``by`` command: it only reads, as its words show. ``fault`` is why the call cannot run at all (no such argument, a
    path outside): nobody is asked, and the model gets it as the result.
    """

    action: Action
    effect: Effect = "runs"
    by: Literal["", "mode", "rule", "command"] = ""
    reason: str = ""
    rule: Rule | None = None
    fault: str = ""


class PermissionRequest(msgspec.Struct, frozen=True):
    """What a person is asked: whether ``call`` may run, whose tool has this ``effect``, and why that is asked.

    ``always`` is the rule that an answer of "always" adds to the session.
    """

    call: ToolCall
    effect: Effect
    reason: str
    always: str


class PermissionAnswer(msgspec.Struct, frozen=True):
    """A person's answer. ``always`` is for such calls of this session from now on; ``note`` is told to the model.

    ``goes_on``, with a no: the turn does not end; the model gets the note as the call's result and answers it.
    """

    allow: bool
    always: bool = False
    note: str = ""
    goes_on: bool = False


class _Subject(NamedTuple):
    """What patterns are about. ``others``: the call has more arguments than this."""

    kind: Literal["command", "path", "arguments"]
    text: str
    others: bool = False


def decide(permissions: Permissions, call: ToolCall, effect: Effect) -> Verdict:
    """What is to happen with ``call`` of a tool with this ``effect``."""
    from thinkback.turn.safe_commands import is_safe

    subjects = _subjects(call)
    subject = subjects[0]
    speaking = [rule for rule in permissions.rules if _is_about(rule, call, subjects)]
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
    """The rule that lets such calls run without asking: this very command or path, else what asked, no more.

    Of tools that are not known it is this very call, as what stands beside a command may be all that matters.
    """
    subject = _subjects(call)[0]
    by_pattern = verdict.rule is not None and verdict.rule.pattern is not None
    if subject.kind == "arguments" and not by_pattern:
        return Rule(call.name, "allow")
    is_known = call.name == SHELL or (subject.kind == "path" and verdict.effect != "runs")
    return Rule(call.name, "allow", literal(call.arguments if subject.others and not is_known else subject.text))


def with_rule(rules: Sequence[Rule], new: Rule, asked: Rule | None) -> tuple[Rule, ...]:
    """``rules`` with ``new`` behind the one that ``asked``, or before all where none did: stronger ones stay so."""
    at = rules.index(asked) + 1 if asked in rules else 0
    return (*rules[:at], new, *rules[at:])


def _is_about(rule: Rule, call: ToolCall, subjects: Sequence[_Subject]) -> bool:
    if not is_like(rule.tool, call.name, any_case=rule.action != "allow"):
        return False
    if rule.pattern is None:
        return True
    if rule.action != "allow":
        wordings = (text for subject in subjects for text in _wordings(subject))
        return any(is_like(rule.pattern, text, any_case=True) for text in wordings)
    if rule.is_wide:
        return is_like(rule.pattern, subjects[0].text) and _is_plain(subjects[0])
    return any(is_like(rule.pattern, text) for text in (subjects[0].text, call.arguments))


def _is_plain(subject: _Subject) -> bool:
    """Whether an asterisk may stand for a part of it: nothing in it leads elsewhere."""
    from thinkback.turn.safe_commands import METACHARACTERS

    if subject.kind == "path":
        return ".." not in subject.text.replace("\\", "/").split("/")
    return subject.kind != "command" or not METACHARACTERS.search(subject.text)


def _wordings(subject: _Subject) -> Iterator[str]:
    """The texts that may say the same."""
    yield subject.text
    if subject.kind == "command":
        for part in _PARTS.split(subject.text):
            yield " ".join(part.split())
            yield _plainly(part)
    elif subject.kind == "path":
        parts = _normal(subject.text.replace("\\", "/"))
        yield from ("/".join(parts[at:]) for at in range(len(parts)))


def _plainly(command: str) -> str:
    """A simple command as it is usually written: without quotes, the program's directory, and what stands before it."""
    words = list(dropwhile(_BEFORE.fullmatch, _QUOTING.sub("", command).split()))
    return " ".join([words[0].rpartition("/")[2], *words[1:]]) if words else ""


def _normal(path: str) -> list[str]:
    """The parts of ``path`` without ``.`` and with ``..`` followed."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return parts


def _subjects(call: ToolCall) -> list[_Subject]:
    """The command of a call and its path, else its arguments; the first one is what may be allowed."""
    try:
        arguments: object = canonical.decode(call.arguments or "{}")
    except msgspec.DecodeError:
        arguments = None
    given = arguments if isinstance(arguments, dict) else {}
    kinds: tuple[Literal["command", "path"], ...] = ("command", "path")
    found = [_Subject(kind, given[kind], len(given) > 1) for kind in kinds if isinstance(given.get(kind), str)]
    return found or [_Subject("arguments", call.arguments)]
