"""What goes upstream: the history and the client's parameters as a plan for one place, in the client's own bytes.

Promises: reasoning is decided by compile on the history, as for any session; what is left out is named. Must not: send
anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from thinkback.compile.write import NO_MEMBER, RESULT_OF, UNCARRIED
from thinkback.errors import ThinkbackError, UnsupportedContent
from thinkback.log.erasing import END_USER
from thinkback.model import canonical
from thinkback.model.blocks import Media, Unknown
from thinkback.model.commits import Commit
from thinkback.model.target import Settings, Target, merge, merge_headers, name_conversation
from thinkback.proxy import losses, preserve_json, recognition
from thinkback.proxy.events import Route
from thinkback.proxy.request_view import Received, View
from thinkback.proxy.resume import Resumed
from thinkback.settings import snapshot
from thinkback.turn import prompt_cache
from thinkback.turn.own_fields import not_for, withheld_members
from thinkback.turn.plan import AS_WRITTEN, CHOSEN, LEFT_OUT, UNASKED, Plan, remarked
from thinkback.turn.translation import plan_without_refused, translate
from thinkback.wire.registry import dialect, front
from thinkback.wire.result import WantedOptions

_INCLUDE = "reasoning.includeInContext"
REFUSED_FOR = 3600 * 1_000_000
REFUSALS = 1024
_SHOWN = 300
# What became of a control that the model is not given.
_UNMET = ("absent", "suppressed", "unrepresentable")
# Characters of what is left out that a record names.
_NAMED = 2000


class Planned(NamedTuple):
    """``left`` names what the client asked for and this place cannot be, each once, in the order of the alphabet."""

    plan: Plan
    left: tuple[str, ...]


Place: TypeAlias = tuple[str, ...]
"""What refuses as one."""


class Refusals:
    """What places refused of that which was added to requests, each name for ``REFUSED_FOR`` microseconds; the name of
    what only the settings asked for is empty.

    In which words is not remembered: they may quote a request, and the next one is somebody else's.
    """

    def __init__(self) -> None:
        self._until: OrderedDict[Place, dict[str, int]] = OrderedDict()

    def add(self, place: Place, now: int, name: str = "") -> None:
        """``place`` refused it, and answered without."""
        self._until[place] = {**self._until.get(place, {}), name: now + REFUSED_FOR}
        self._until.move_to_end(place)
        if len(self._until) > REFUSALS:
            self._until.popitem(last=False)

    def names(self, place: Place, now: int) -> list[str]:
        """What ``place`` is not given, in the order of the alphabet: all else is worth another try."""
        return sorted(name for name, until in self._until.get(place, {}).items() if now < until)

    def why(self, place: Place, now: int) -> str:
        """Why ``place`` is not asked for what only the settings ask for; nothing where it is."""
        return "the provider refused it in the last hour" if "" in self.names(place, now) else ""


def place_of(route: Route) -> Place:
    """The place that ``route`` leads to."""
    return (route.target.base_url, *route.breaker)


def planned(view: View, resumed: Resumed, route: Route, settings: Settings, refusal: str = "") -> Planned:
    """The request to ``route``; ``settings`` are those in force there. Raises what ``translate`` raises.

    ``refusal``: why what the settings alone ask for is not asked for there.
    """
    target, received = route.target, view.received
    refusal = refusal or received.as_written
    hindrance = _hindrance(view, target, refusal) if settings.readable else None
    # A client of the upstream's own dialect says itself what it wants to see.
    is_native = received.front == target.endpoint.dialect
    readable = bool(settings.readable) and hindrance is None if is_native else None
    settings = _settings(view, settings, readable=readable)
    own = not_for(target.endpoint, view.facts.own)
    params = {key: value for key, value in _params(view, resumed).items() if key not in own}
    translated = translate(received.front, target, params, settings, view.request.amid)
    if received.front != target.endpoint.dialect:
        recognition.check_names(resumed.known.drafts)
    params = _with_options(view, target, translated.params)
    plan, refused = plan_without_refused(resumed.history, target, translated.settings, params)
    remarks: dict[str, str] = {}
    if view.facts.end_user:
        remarks[END_USER] = view.facts.end_user
    if resumed.missing:
        remarks["not_found"] = "; ".join(f"{at}: {why}" for at, why in resumed.missing)
    if resumed.chosen:
        remarks[CHOSEN] = resumed.chosen
    if resumed.lost:
        remarks[losses.REMARK] = " ".join(resumed.lost)
    before = prompt_cache.last_sent(resumed.earlier, plan.record().target) if resumed.earlier else None
    if before is not None:
        remarks[prompt_cache.REMARK] = canonical.source(before)
    if hindrance:
        remarks[UNASKED] = hindrance
    if received.as_written:
        remarks[AS_WRITTEN] = received.as_written[:_SHOWN]
        plan = msgspec.structs.replace(plan, held=True, sent_instead=canonical.digest(received.body))
    streams = view.facts.streams if target.endpoint.stream_path else plan.streams
    plan = msgspec.structs.replace(
        remarked(plan, remarks),
        settings=snapshot(translated.settings),
        streams=streams,
        base_headers=_headers(plan.added_headers, route, received, resumed.line.session, streams=streams),
        authenticator=route.authenticator,
        leaked_calls=route.leaked_calls,
    )
    if received.as_written:  # what this place does not take went there all the same
        return Planned(plan, ())
    tools = (f"tool {control.value}: {control.reason}" for control in plan.controls if control.key == "tools")
    unmet = (
        f"{control.key} {control.value}: {control.reason}"
        for control in plan.controls
        if control.key in translated.asked and control.state in _UNMET
    )
    changed = _changed_messages(plan, resumed.history.commits, target, {path.rpartition(".")[2] for path in own})
    left = tuple(sorted({*translated.left, *refused, *tools, *unmet, *changed, *own.values()}))
    return Planned(remarked(plan, {**plan.remarks, LEFT_OUT: "; ".join(left)[:_NAMED]}) if left else plan, left)


class Bound(NamedTuple):
    """Of so many responses reasoning is ``there``, and that of so many ``goes``."""

    goes: int
    there: int


def bound_reasoning(view: View, resumed: Resumed, route: Route, settings: Settings) -> Bound:
    """Count the reasoning bound to its prefix that a request to ``route`` would carry; none where it is refused."""
    there = {commit.response for commit in resumed.history.commits if commit.kind == "reasoning"}
    try:
        chain = planned(view, resumed, route, settings).plan.request.chain
    except ThinkbackError:
        chain = None
    return Bound(chain.length if chain is not None else 0, len(there))


def _changed_messages(plan: Plan, commits: Sequence[Commit], target: Target, own: Collection[str]) -> Iterator[str]:
    """What of the conversation's messages does not go as its program wrote it: results without a call and calls without
    a result, items that only their maker can read, parts of earlier messages that the dialect has no place for, members
    of messages that are not among the fields ``own`` of one provider.

    Raises ``UnsupportedContent`` for such a part of what is asked now, and for a request without any message.
    """
    if not len(plan.request) and not plan.kept:
        raise UnsupportedContent(
            f"the request has no message besides its system prompt, and {target.endpoint.id} answers none",
            details={"param": "messages"},
            next_actions=("send a message of the user's",),
        )
    told = [each for each in plan.decisions if each.what == "text" and each.action in ("drop", "text")]
    gone = {each.block: each for each in told if each.action == "drop"}
    yield from (each.reason for each in told if each.action == "text" and each.reason.startswith(RESULT_OF))
    for each in told:
        members = each.reason.removeprefix(NO_MEMBER).split(", ") if each.reason.startswith(NO_MEMBER) else ()
        if named := [member for member in members if member not in own]:
            yield NO_MEMBER + ", ".join(named)
    asked = True  # behind the last answer
    for commit in reversed(commits) if gone else ():
        asked = asked and commit.kind != "response"
        if commit.hash not in gone:
            continue
        reason = gone[commit.hash].reason
        if reason.startswith(UNCARRIED):
            why = reason.removeprefix(UNCARRIED)
            if asked and commit.kind != "system":  # a program's instructions are not what is asked
                raise UnsupportedContent(
                    f"a part of the request's message cannot go to {target.endpoint.id}: {why}",
                    details={"param": "messages", "dialect": target.endpoint.dialect},
                    next_actions=("leave the part out", "or use a model whose endpoint takes it"),
                )
            yield f"a part of {'a system' if commit.kind == 'system' else 'an earlier'} message: {why}"
        elif isinstance(commit.value, Media):
            yield f"{commit.value.media_type} of an earlier answer: {reason}"
        elif isinstance(commit.value, Unknown):
            item = canonical.decode_lenient(commit.value.wire)
            kind = item.get("type") if isinstance(item, dict) else None
            why = reason if commit.value.text else "only its maker can read it"
            yield f"{kind if isinstance(kind, str) else 'item'}: {why}"


def body_of(plan: Plan, received: Received) -> bytes:
    """What is sent: the plan's request, in the client's own bytes where both speak one dialect."""
    if received.as_written:
        return received.body
    written = bytes(plan)
    if plan.target.endpoint.dialect != received.front:
        return written
    as_asked = front(received.front).as_asked
    if as_asked is not None:
        written = as_asked(received.body, written)
    return preserve_json.preserved(received.body, written, withheld_members(plan.target.endpoint))


def _settings(view: View, settings: Settings, *, readable: bool | None) -> Settings:
    settings = msgspec.structs.replace(settings, readable=readable, client=view.received.front)
    if _INCLUDE in settings.explicit or all(draft.kind != "reasoning" for draft in view.request.drafts):
        return settings
    # A client that sends reasoning back wants it to go along, wherever it may.
    return msgspec.structs.replace(settings, include_in_context=True, client_reasons=True)


def _hindrance(view: View, target: Target, refusal: str) -> str | None:
    """Why nothing is asked for the log alone: in words where somebody may wonder, ``""`` where it is not kept there, or
    the client's dialect is another; ``None``: nothing hinders it.
    """
    received, shape = view.received, front(view.received.front)
    is_kept = received.client.recording in ("full", "reasoning")
    if not is_kept or shape.hiding is None or received.front != target.endpoint.dialect:
        return ""
    said = ((name, value.strip()) for name in shape.headers for value in received.headers.get(name, "").split(","))
    for header, value in said:
        if value.startswith(shape.unhidden):
            return f"the request has {header}: {value[:_SHOWN]}, which says something of what would be taken out"
    return refusal[:_SHOWN] or None


def _params(view: View, resumed: Resumed) -> dict[str, Any]:
    """The client's parameters; the conversation that it only names goes along whole."""
    whole = () if view.received.verbatim else front(view.received.front).body.served_whole
    params = {key: value for key, value in view.request.params.items() if key not in whole}
    if not (resumed.known.previous and resumed.goes_on):
        return params
    return {key: value for key, value in params.items() if key != "previous_response_id"}


def _with_options(view: View, target: Target, params: dict[str, Any]) -> dict[str, Any]:
    """``params`` with what asks for a stream in the upstream's words, or in the client's own for its counts."""
    endpoint, facts = target.endpoint, view.facts
    if view.received.front != endpoint.dialect:
        wanted = WantedOptions(facts.streams and not endpoint.stream_path, endpoint.stream_usage)
        rest = {key: value for key, value in params.items() if key != "stream"}
        return {**rest, **dialect(endpoint.dialect).options(wanted)}
    if facts.hides_counts and endpoint.stream_usage and not view.received.as_written:
        return merge(params, dialect(endpoint.dialect).options(WantedOptions(facts.streams, usage=True)))
    return params


def _headers(added: dict[str, str], route: Route, received: Received, session: str, *, streams: bool) -> dict[str, str]:
    headers = merge_headers(route.streaming if streams else route.whole, added)
    endpoint = route.target.endpoint
    # The client's own id comes first: its program shows that one elsewhere too.
    given_id = received.headers.get(endpoint.conversation_header.lower(), "")
    headers = name_conversation(endpoint, headers, given_id or session)
    if received.front == endpoint.dialect:
        given, theirs = received.headers, front(received.front).headers
        known = endpoint.header_values
        values = {name: _known(given[name], known.get(name)) for name in theirs if name in given}
        headers = merge_headers(headers, {name: value for name, value in values.items() if value})
    return headers


def _known(value: str, known: Sequence[str] | None) -> str:
    """What a client says in a header, without the values that the upstream does not know."""
    if known is None:
        return value
    return ",".join(each for each in map(str.strip, value.split(",")) if each in known)
