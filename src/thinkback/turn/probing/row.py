"""From what experiments showed to a rule row: each key with its evidence, and where it differs from a known row.

What experiments cannot show is taken from that row, and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from thinkback.model.rule import Rule
from thinkback.turn.probing.findings import Findings, Outcome

NOT_PROBED = ("guard", "prefix_bound", "keep_switch", "follower", "tied", "system", "controls", "thinks_unless")
"""Keys of the row that no experiment of one conversation can show."""
Phase: TypeAlias = Literal["open", "later"]
# A shorter text would be found in refusals of any kind.
_TELLING = 16
_LONGEST = 200
# What stands for itself in a regular expression, although it would be escaped.
_PLAIN = frozenset(" -'\"`/,:")
# What no difference of a few words explains.
_MORE = 8


class Key(NamedTuple):
    """One key of the row: its value, and what shows it."""

    name: str
    value: Any
    evidence: str


class Difference(NamedTuple):
    """A key that the known row has otherwise."""

    key: str
    known: Any
    probed: Any
    evidence: str


class Probed(msgspec.Struct, frozen=True):
    """The row that the findings imply. ``inherited`` are keys that were not probed and say something in ``like``."""

    rule: Rule
    keys: tuple[Key, ...]
    differences: tuple[Difference, ...]
    inherited: tuple[str, ...]


def conclude(found: Findings, like: Rule, id: str, endpoint: str, model: str, on: str) -> Probed:
    """The row for ``model`` at ``endpoint``; what was not probed is ``like`` the known row. ``on`` is the day."""
    keys = tuple(_keys(found, like))
    shown: dict[str, list[str]] = {}
    for key in keys:
        shown.setdefault(key.evidence, []).append(key.name)
    probed = {key.name for key in keys}
    told = "; ".join(f"{', '.join(names)}: {evidence}" for evidence, names in shown.items())
    rule = msgspec.structs.replace(
        like,
        id=id,
        endpoint=endpoint,
        model=(re.sub(r"([*?[])", r"[\1]", model),),
        since=on,
        source=f"probed on {on}: {told}",
        dialect="",
        unconfirmed={key: text for key, text in like.unconfirmed.items() if key not in probed},
        omits=(),
        adds=(),
        **{key.name: key.value for key in keys},
    )
    differences = tuple(
        Difference(key.name, getattr(like, key.name), key.value, key.evidence)
        for key in keys
        if getattr(like, key.name) != key.value
        and not (key.name == "field" and like.form == "field" and not like.field)
    )
    blank = Rule("", "", "", "")
    inherited = tuple(name for name in NOT_PROBED if getattr(like, name) != getattr(blank, name))
    return Probed(rule, keys, differences, inherited)


def _keys(found: Findings, like: Rule) -> Iterator[Key]:
    open_turn, later = _demand(found, "open"), _later(found)
    said = {"open_turn": open_turn, "later": later}
    taken = [known.value for known in said.values() if known is not None]
    if found.form == "none" or (taken and all(value == "never" for value in taken)):
        why = found.summary if found.form == "none" else "it is refused wherever it stands"
        yield Key("form", "none", why)
        yield Key("open_turn", "never", why)
        yield Key("later", "never", why)
        yield Key("placeholder", "", why)
        yield Key("placeholder_on", "never", why)
        yield Key("missing", (), why)
    else:
        yield from _form(found, like)
        yield from (key for key in (open_turn, later) if key is not None)
        yield from _stand_ins(found, like)
        yield from _signatures(found, like)
    refusals = _refusals(found, like)
    if refusals != like.refusals:
        yield Key("refusals", refusals, "from the texts of the refusals")


def _form(found: Findings, like: Rule) -> Iterator[Key]:
    # a known row that gives reasoning back as it came agrees with whatever came
    agrees = like.as_received and found.form in ("details", "tags") and like.form in ("details", "tags")
    yield Key("form", like.form if agrees else found.form, found.summary)
    if found.form == "field":
        yield Key("field", found.field, found.summary)
        if like.reasoning_field not in ("", found.field):
            yield Key("reasoning_field", "", found.summary)


def _demand(found: Findings, phase: Phase) -> Key | None:
    """The demand that two experiments show; ``None`` where they were not made, or neither was accepted."""
    name = "open_turn" if phase == "open" else "later"
    given, absent = found.outcomes.get(f"{phase}.with"), found.outcomes.get(f"{phase}.without")
    if given is None or absent is None or not (given.accepted or absent.accepted):
        return None
    if not given.accepted:
        return Key(name, "never", f"refused with it ({given.status})")
    if not absent.accepted:
        return Key(name, "must", f"refused without it ({absent.status})")
    said = "accepted with it and without"
    if given.input is None or absent.input is None:
        return Key(name, "should", said)
    if given.input > absent.input:
        return Key(name, "should", f"{said}, counted as {given.input - absent.input} tokens of input")
    if phase == "later" and _counts_reasoning(found):
        return Key(name, "may", f"{said}, and not counted as input, as that of the turn under way is")
    return Key(name, "should", f"{said}, not counted as input")


def _counts_reasoning(found: Findings) -> bool:
    """Whether the host's count of input shows reasoning: it did in the turn under way."""
    given = found.outcomes.get("open.with")
    others = [found.outcomes[name].input for name in ("open.without", "open.stranger") if name in found.outcomes]
    counted = None if given is None else given.input
    return counted is not None and any(other is not None and counted - other >= _MORE for other in others)


def _later(found: Findings) -> Key | None:
    key = _demand(found, "later")
    if key is None or key.value != "must":
        return key
    plain = found.accepted("plain.without")
    if plain is None:
        return key._replace(value="must-after-tools" if found.called else "must")
    if plain:
        return Key("later", "must-after-tools", f"{key.evidence}, accepted after a turn without tools")
    return Key("later", "must", f"{key.evidence}, also after a turn without tools")


def _stand_ins(found: Findings, like: Rule) -> Iterator[Key]:
    """Which messages need something, and what may stand in where there is nothing."""
    calls = found.accepted("later.calls")
    if calls is not None:
        said = "accepted" if calls else "refused"
        yield Key("scope", "tool-calls" if calls else "all", f"{said} with reasoning on messages with calls only")
    stranger = found.accepted("open.stranger")
    if found.form == "field" and found.accepted("open.without") is False:
        works = bool(stranger) or found.accepted("open.blank") is True
        rest = tuple(step for step in like.missing if step != "placeholder")
        if works:
            yield Key("placeholder", " ", "a blank is accepted in its place")
            yield Key("placeholder_on", *_places(found, calls))
            yield Key("missing", ("placeholder", *(step for step in rest if step != "none")), "a blank is accepted")
        else:
            yield Key("placeholder", "", "a blank is refused in its place")
            yield Key("placeholder_on", "never", "a blank is refused in its place")
            yield Key("missing", rest, "a blank is refused")
    elif stranger is not None:
        yield Key("missing", *_dummy(stranger, like))


def _places(found: Findings, calls: bool | None) -> tuple[str, str]:
    """Which messages need something even if there never was reasoning."""
    if calls is None:
        return "never", "messages of finished turns are accepted without"
    if calls:
        return "tool-calls", "only messages with calls are refused without"
    if found.accepted("plain.without") is False:
        return "all", "every message is refused without"
    return "with-tools", "every message is refused without where tools are offered"


def _dummy(accepted: bool, like: Rule) -> tuple[tuple[str, ...], str]:
    rest = tuple(step for step in like.missing if step != "dummy")
    if accepted:
        return ("dummy", *rest), "the stand-in is accepted on a call of another model"
    return rest, "the stand-in is refused on a call of another model"


def _signatures(found: Findings, like: Rule) -> Iterator[Key]:
    """What must not go without its opaque value."""
    unsigned = found.accepted("open.unsigned")
    if unsigned is None or found.form != "native":
        return
    known = like.need_signature
    lacking = () if "*" in known else tuple(kind for kind in found.kinds if kind not in known)
    if not unsigned and lacking:
        yield Key("need_signature", (*known, *lacking), "refused without the opaque value")
    if found.signed_calls:
        said = "accepted" if unsigned else "refused"
        yield Key("signed_calls", not unsigned, f"{said} without the opaque value of a call")


def _refusals(found: Findings, like: Rule) -> tuple[str, ...]:
    """Patterns for the texts of refusals that the known row does not recognise."""
    patterns = [*like.refusals]
    for outcome in found.outcomes.values():
        if _tells(outcome) and not any(re.search(pattern, outcome.text, re.IGNORECASE) for pattern in patterns):
            patterns.append(pattern_of(outcome.text))
    return tuple(patterns)


def _tells(outcome: Outcome) -> bool:
    about_reasoning = "." in outcome.name
    return about_reasoning and not outcome.accepted and len(outcome.text) >= _TELLING


def pattern_of(text: str) -> str:
    """A regular expression for ``text`` with other numbers and ids in it."""
    line = text.strip().splitlines()[0][:_LONGEST]
    parts = re.split(r"(\b(?=\w*\d)[\w-]{12,}|\d+)", line)
    return "".join(_literal(part) if at % 2 == 0 else _varying(part) for at, part in enumerate(parts))


def _literal(part: str) -> str:
    """``part`` escaped where a regular expression needs it and nowhere else."""
    return "".join(character if character in _PLAIN else re.escape(character) for character in part)


def _varying(part: str) -> str:
    return r"\d+" if part.isdigit() else r"[\w-]+"
