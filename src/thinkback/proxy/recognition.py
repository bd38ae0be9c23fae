"""The conversation that a request belongs to, found again by what its client sends back or names.

Promises: a look-up stays inside the scope of the request; what is not found is named, never guessed. What must be
looked up is asked for, as ``Lookups``. Must not: open a log, or decide what is sent of a conversation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from thinkback.errors import WireError
from thinkback.log import echo_digests, matching
from thinkback.log.echo_digests import EchoedMessage
from thinkback.log.matching import CANDIDATES, IMPORTED_SCOPE, Recognised, Search, Why
from thinkback.log.protocol import Seen
from thinkback.log.twins import Marks, levels
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Text, Unknown
from thinkback.model.commits import Commit, Draft, Response
from thinkback.proxy.events import LookUp, Lookups, OpenKept, ReadHistory, ReadLines
from thinkback.turn.plan import History

OF_A_RESPONSE = frozenset({"response", "reasoning", "assistant", "tool_call", "other", "media"})
NOTHING_RECORDED = "nothing is recorded"
NOTHING = frozenset({"unknown", NOTHING_RECORDED})
"""The reasons for which an answer is missing that say nothing of whether there ever was one."""
# So many answers behind known ones are looked for, the last ones first.
_MOST_BEHIND = 2048
# So many beginnings of what a client said at first are looked up.
_MOST_SAID = 8
_EXPIRED = "it is not kept any more"
_UNSTORED = "it is not stored yet"
# The id that the gateway gives an item, and how the ids of reasoning begin.
_OURS = re.compile(r"[a-z]+_(resp_[0-9A-Za-z]+)_(\d+)")
_REASONING = "rs_"
_UNMARKED = Marks()


class Request(NamedTuple):
    """A client's request as values: its drafts, the messages in them as it sees them, and their chain of digests.

    ``marks`` tell its conversation from others with equal words.
    """

    drafts: Sequence[Draft]
    said: Sequence[EchoedMessage]
    links: Sequence[bytes]
    previous: str = ""
    marks: Marks = Marks()


def request_of(drafts: Sequence[Draft], previous: str = "", marks: Marks = _UNMARKED) -> Request:
    """``drafts`` of a request; ``previous`` is the id of the response that it goes on from, where it names one."""
    said = echo_digests.echoed_messages(drafts)
    return Request(drafts, said, echo_digests.chain(message.value for message in said), previous, marks)


class KnownConversation(NamedTuple):
    """What is known of a conversation.

    ``history`` ends where the conversation was seen last, ``through`` is the last message of the request in it (-1:
    none). ``copies`` are the drafts of stored responses for messages behind it. ``missing`` are (message, why) of
    answers that nothing is known of. ``recorded`` is the last message that the log has, with its content or without.
    ``earlier`` is the line that the conversation was on so far, where it goes on from an earlier place or another one.
    ``chosen`` says how it was chosen where the log has several with equal words; ``others`` are those that would do
    as well, where the request is known as far as its model's last message. ``begun`` counts the drafts of the message
    behind ``through`` that ``history`` has.
    """

    base: Seen | None
    history: History
    through: int
    copies: dict[int, list[Draft]]
    missing: tuple[tuple[int, str], ...]
    recorded: int = -1
    earlier: Sequence[Commit] = ()
    chosen: str = ""
    others: Sequence[Seen] = ()
    begun: int = 0


def find(request: Request, scope: bytes) -> Lookups[KnownConversation]:
    """``request`` in a log that has its content."""
    seen, lines = yield from _found_on_one_line(request, scope)
    seen = _on_one_line(seen, request.said, lines)
    seen = yield from _behind_cut(seen, request)
    begun = 0
    if seen.base is None and not seen.restored and begins_with_several(request):
        base, begun = yield from _behind_silence(request, scope)
        seen = msgspec.structs.replace(seen, base=base)
    history = History()
    if seen.base is not None:
        history = yield ReadHistory(seen.base.session, seen.base.head.hash)
    copies = _copies(seen, lines)
    last = seen.restored.get(max(seen.restored, default=-1))
    earlier = lines[last.session, last.head.hash] if last is not None else ()
    others = () if copies or seen.missing else seen.others
    return KnownConversation(
        seen.base, history, seen.through, copies, seen.missing, seen.through, earlier, _chosen(seen), others, begun
    )


def find_withheld(request: Request, scope: bytes) -> Lookups[KnownConversation]:
    """``request`` in a log that does not have its content: responses are kept apart, everything else it brings."""
    seen = yield from _found_in(request, scope)
    if seen.restored:
        seen = _of_one_conversation(seen, (yield from _lines(seen.restored)))
    places = {**seen.restored}
    if seen.base is not None:
        places |= yield from _on_the_line(request, scope, seen.base, seen.through)
    kept: dict[str, list[Draft]] = yield OpenKept(frozenset(place.response for place in places.values()), scope)
    copies = {at: kept[place.response] for at, place in places.items() if place.response in kept}
    behind = dict(seen.missing)
    missing = [
        (at, behind.get(at, _EXPIRED if at in places else "unknown"))
        for at, message in enumerate(request.said)
        if message.speaker == "assistant" and at not in copies
    ]
    return KnownConversation(seen.base, History(), -1, copies, tuple(missing), seen.through, chosen=_chosen(seen))


def on_another(found: KnownConversation, other: Seen) -> Lookups[KnownConversation]:
    """``found`` as it is where ``other``, one of its ``others``, is the conversation that goes on."""
    history = yield ReadHistory(other.session, other.head.hash)
    chosen = f"{found.chosen}, then the one with the most reasoning that is valid behind what this request begins with"
    return found._replace(base=other, history=history, chosen=chosen)


def _chosen(found: Recognised) -> str:
    return str(found.choice) if found.choice is not None else ""


def find_imported(request: Request, end_user: str) -> Lookups[KnownConversation | None]:
    """``request`` among histories that were imported, which are its ``end_user``'s: a file names none. The one that has
    most of it counts, the newest of several.

    What is found begins a session of its own, as a copy, so that a later import finds its session as it left it.
    """
    rows: Sequence[Seen] = yield LookUp(matching.beginning(request.said), IMPORTED_SCOPE, CANDIDATES)
    places = {(seen.session, seen.head.hash): seen for seen in rows}
    if not places:
        return None
    lines: _Lines = yield ReadLines(frozenset(places))
    histories = [echo_digests.drafts_of(lines[place]) for place in places]
    common = [_common(request.said, echo_digests.echoed_messages(drafts)) for drafts in histories]
    best = max(range(len(histories)), key=lambda at: (len(common[at]), -at))
    copies: dict[int, list[Draft]] = {}
    for at, message in enumerate(common[best]):
        if message.responses:
            drafts = (draft for draft in histories[best] if draft.response in message.responses and not draft.edit)
            copies[at] = [_of_end_user(draft, end_user) for draft in drafts if draft.kind in OF_A_RESPONSE]
    missing = tuple(
        (at, "unknown") for at, each in enumerate(request.said) if each.speaker == "assistant" and at not in copies
    )
    several = sum(len(each) == len(common[best]) for each in common)
    chosen = str(matching.Choice("", several)) if several > 1 else ""
    return KnownConversation(None, History(), -1, copies, missing, chosen=chosen)


def _common(said: Sequence[EchoedMessage], there: Sequence[EchoedMessage]) -> list[EchoedMessage]:
    """The messages that a history begins with and a request as well."""
    same = itertools.takewhile(lambda pair: _is_same(*pair), zip(said, there, strict=False))
    return [message for _, message in same]


def _is_same(one: EchoedMessage, other: EchoedMessage) -> bool:
    return not {one.value, *one.others}.isdisjoint((other.value, *other.others))


def _of_end_user(draft: Draft, end_user: str) -> Draft:
    if not isinstance(draft.value, Response):
        return draft
    origin = msgspec.structs.replace(draft.value.origin, end_user=end_user)
    return msgspec.structs.replace(draft, value=msgspec.structs.replace(draft.value, origin=origin))


def known_to_wait(
    missing: Sequence[tuple[int, str]], request: Request, unstored: frozenset[bytes]
) -> list[tuple[int, str]]:
    """``missing`` messages; of those whose digest is in ``unstored`` it is said that they only wait."""
    if not unstored:
        return list(missing)
    search = Search(request.said, request.links)
    return [
        (at, _UNSTORED if why in NOTHING and not unstored.isdisjoint(search.digests_of(at)) else why)
        for at, why in missing
    ]


def _on_the_line(request: Request, scope: bytes, base: Seen, through: int) -> Lookups[dict[int, Seen]]:
    """The responses of the messages up to ``through``: those of the line that ends with ``base``."""
    place = base.session, base.head.hash
    lines: _Lines = yield ReadLines(frozenset([place]))
    line = {commit.response for commit in lines[place] if commit.kind == "response"}
    answers = [at for at, message in enumerate(request.said[: through + 1]) if message.speaker == "assistant"]
    places = {
        digest: at
        for at in answers
        for link in [request.links[at]]
        for digest in (link, *(echo_digests.narrowed(link, level.data) for level in levels(request.marks)))
    }
    rows: Sequence[Seen] = yield LookUp(list(places), scope, CANDIDATES)
    found: dict[int, Seen] = {}
    for row in rows:
        if row.response in line:
            found.setdefault(places[row.digest], row)
    return found


def _found_in(request: Request, scope: bytes) -> Lookups[Recognised]:
    """What the request echoes; of one that only names a response, that one."""
    if request.previous:
        rows: Sequence[Seen] = yield LookUp([echo_digests.of_response(request.previous)], scope, CANDIDATES)
        found = {seen.response: seen for seen in rows}
        base = next(iter(found.values())) if len(found) == 1 else None
        return Recognised(base, -1, {}, ())
    search = Search(request.said, request.links, request.marks)
    while wanted := search.wanted():
        search.take((yield LookUp(wanted, scope, CANDIDATES)))
    return search.result()


_Lines = dict[tuple[str, str], list[Commit]]


def _found_on_one_line(request: Request, scope: bytes) -> Lookups[tuple[Recognised, _Lines]]:
    """The part of one conversation that a request echoes, and the log up to each response found by itself."""
    seen = yield from _found_in(request, scope)
    lines = yield from _lines(seen.restored)
    behind = yield from _behind_known(seen, request.said, lines, scope)
    if behind:
        lines |= yield from _lines(behind)
        missing = tuple((at, why) for at, why in seen.missing if at not in behind)
        seen = msgspec.structs.replace(seen, restored={**seen.restored, **behind}, missing=missing)
    seen = _of_one_conversation(seen, lines)
    if doubtful := {at: found for at, found in seen.restored.items() if (found.session, found.head.hash) not in lines}:
        lines |= yield from _lines(doubtful)
    return seen, lines


def _of_one_conversation(found: Recognised, lines: _Lines) -> Recognised:
    """``found`` with nothing restored that does not belong to the conversation of the last response in it; of several
    that answer to a message the one that does.

    A response belongs there that stands on its line, itself or as a copy, and has the base on its own.
    """
    order = sorted(found.restored, reverse=True)
    goes_on = [at for at in order if found.base is None or found.base.response in _responses(found.restored[at], lines)]
    if not goes_on:
        kept: dict[int, Seen] = {}
    else:
        line = _responses(found.restored[goes_on[0]], lines)
        kept = {at: found.restored[at] for at in goes_on if found.restored[at].response in line}
        taken = {seen.response for seen in kept.values()}
        for at, several in found.doubtful.items():
            fitting = [seen for seen in several if seen.response in line and seen.response not in taken]
            if at < goes_on[0] and len(fitting) == 1:
                kept[at] = fitting[0]
                taken.add(fitting[0].response)
    missing: dict[int, Why] = {**dict(found.missing), **dict.fromkeys(found.restored.keys() - kept.keys(), "another")}
    left = tuple((at, why) for at, why in sorted(missing.items()) if at not in kept)
    return msgspec.structs.replace(found, restored=kept, missing=left)


def _responses(seen: Seen, lines: _Lines) -> set[str]:
    return {commit.response for commit in lines[seen.session, seen.head.hash] if commit.kind == "response"}


def _lines(restored: Mapping[int, Seen]) -> Lookups[_Lines]:
    """What stands in the log up to each response that was found one by one."""
    places = frozenset((seen.session, seen.head.hash) for seen in restored.values())
    lines: _Lines = {}
    if places:
        lines = yield ReadLines(places)
    return lines


def _behind_known(
    found: Recognised, said: Sequence[EchoedMessage], lines: _Lines, scope: bytes
) -> Lookups[dict[int, Seen]]:
    """The missing answers that the log has behind one that was found: a client may have changed what stands before
    both, so that only an answer with calls is found by itself.
    """
    digests: dict[int, bytes] = {}
    missing = {at for at, _ in found.missing}
    # The chain up to a response of a session: the line of its last one mostly has them all. Elsewhere it is a copy.
    ends: dict[tuple[str, str], bytes] = {}
    end = len(said)
    for known in sorted(found.restored, reverse=True):
        seen = found.restored[known]
        place = seen.session, seen.response
        if not missing.isdisjoint(range(known, end)):
            if place not in ends:
                line = echo_digests.echoed_messages(echo_digests.drafts_of(lines[seen.session, seen.head.hash]))
                links = echo_digests.chain(message.value for message in line)
                ends |= {(seen.session, id): to for each, to in zip(line, links, strict=True) for id in each.responses}
            if place in ends:
                behind = echo_digests.chain((each.value for each in said[known + 1 : end]), ends[place])
                digests |= {at: link for at, link in enumerate(behind, known + 1) if at in missing}
        end = known
    if not digests:
        return {}
    rows: Sequence[Seen] = yield LookUp(list(digests.values())[:_MOST_BEHIND], scope, CANDIDATES)
    taken = {seen.response for seen in found.restored.values()}
    sessions = {seen.session for seen in found.restored.values()}
    result: dict[int, Seen] = {}
    for at, digest in digests.items():
        there = [row for row in rows if row.digest == digest and row.response not in taken]
        if there:
            # rows are ordered newest first; those of a known one's session are of its conversation
            result[at] = next((row for row in there if row.session in sessions), there[0])
            taken.add(result[at].response)
    return result


def _on_one_line(found: Recognised, said: Sequence[EchoedMessage], lines: _Lines) -> Recognised:
    """``found`` on the line of its last response, where that has the request's messages and nothing else.

    A client that puts words into an answer (a filler for an empty text, say) is recognised answer by answer, and its
    conversation is one all the same: reasoning that is bound to what stands before it stays where it is.
    """
    if not found.restored:
        return found
    last = max(found.restored)
    seen = found.restored[last]
    commits = lines[seen.session, seen.head.hash]
    line = echo_digests.echoed_messages(echo_digests.drafts_of(commits))
    goes_on = found.base is None or any(commit.hash == found.base.head.hash for commit in commits)
    if len(line) != last + 1 or not goes_on:
        return found
    for at in range(found.through + 1, last + 1):
        there, restored = line[at], found.restored.get(at)
        if there.value != said[at].value and (restored is None or restored.response not in there.responses):
            return found
    missing = tuple((at, why) for at, why in found.missing if at > last)
    return msgspec.structs.replace(found, base=seen, through=last, restored={}, missing=missing)


def _behind_cut(found: Recognised, request: Request) -> Lookups[Recognised]:
    """``found`` behind the last response that broke off and that the request has some of: the beginning before it is
    the request's. What the client keeps of it is its own message.
    """
    first = max(found.restored, default=-1)
    for at in sorted(found.cuts, reverse=True):
        if at < max(first, found.through):
            break
        drafts = [request.drafts[place] for place in request.said[at].at]
        said, calls = echo_digests.visible_text(drafts), echo_digests.visible_calls(drafts)
        places = frozenset((seen.session, seen.head.hash) for seen in found.cuts[at])
        lines: _Lines = yield ReadLines(places)
        begun = [
            (text != said, seen)
            for seen in found.cuts[at]
            for text, made in [_shown(seen, lines)]
            if (said or calls) and text.startswith(said) and made[: len(calls)] == calls
        ]
        for _, seen in sorted(begun, key=lambda each: each[0])[:1]:  # mostly a client keeps all that it got
            missing = tuple((place, why) for place, why in found.missing if place > at)
            return msgspec.structs.replace(found, base=seen, through=at - 1, restored={}, missing=missing)
    return found


def begins_with_several(request: Request) -> bool:
    """Whether the client says several things before the first answer that it has: it may have left one."""
    return bool(request.said) and request.said[0].speaker == "user" and len(request.said[0].at) > 1


def _behind_silence(request: Request, scope: bytes) -> Lookups[tuple[Seen | None, int]]:
    """The first response of a conversation that its client left before it could see anything, and how much the client
    had said by then.
    """
    places = request.said[0].at
    begun: dict[bytes, int] = {}
    for count in range(len(places) - 1, max(0, len(places) - 1 - _MOST_SAID), -1):
        before = echo_digests.echoed_messages([request.drafts[place] for place in places[:count]])
        begun |= {echo_digests.cut(link): count for link in echo_digests.chain(each.value for each in before)}
    rows: Sequence[Seen] = yield LookUp(list(begun), scope, CANDIDATES)
    lines: _Lines = {}
    if rows:
        lines = yield ReadLines(frozenset((seen.session, seen.head.hash) for seen in rows))
    silent = [seen for seen in rows if _shown(seen, lines) == ("", [])]
    # The longest beginning counts, and of several the newest, which comes first.
    last = max(silent, key=lambda seen: begun[seen.digest], default=None)
    return last, begun[last.digest] if last is not None else 0


def _shown(seen: Seen, lines: _Lines) -> tuple[str, list[tuple[str, str]]]:
    """The text and the calls of a response, as far as it came."""
    commits = [each for each in lines[seen.session, seen.head.hash] if each.response == seen.response]
    drafts = echo_digests.drafts_of(commits)
    return echo_digests.visible_text(drafts), echo_digests.visible_calls(drafts)


def _copies(found: Recognised, lines: _Lines) -> dict[int, list[Draft]]:
    return {
        number: [
            Draft(commit.kind, commit.value, commit.response, commit.index)
            for commit in lines[seen.session, seen.head.hash]
            if commit.response == seen.response and commit.kind in OF_A_RESPONSE
        ]
        for number, seen in found.restored.items()
    }


class _Name(NamedTuple):
    """What a draft names: an item, and the id under which its response may be known."""

    item: str
    response: str


def has_names(drafts: Sequence[Draft]) -> bool:
    """Whether anything is named by its id alone."""
    return any(_named(draft) for draft in drafts)


def check_names(drafts: Sequence[Draft]) -> None:
    """Raise ``WireError`` for a name of something that was said, which nobody but its maker understands."""
    for draft in drafts:
        name = _named(draft)
        if name is not None and not name.item.startswith(_REASONING):
            raise WireError(
                f"Item with id '{name.item}' not found.",
                details={"item": name.item},
                next_actions=("send the item itself", "ask the model that made it"),
            )


def resolved(drafts: Sequence[Draft], scope: bytes) -> Lookups[list[Draft]]:
    """``drafts`` with messages in the place of their names.

    A message of a response that is known in the scope is meant, whoever made its id, the gateway or an upstream; the
    name of reasoning needs nothing, since the response brings it. What is not known stays, for an upstream that may
    know it.
    """
    wanted = {name for name in map(_named, drafts) if name is not None and not name.item.startswith(_REASONING)}
    said: dict[str, list[list[Text]]] = {}
    for response in sorted({name.response for name in wanted}):
        said[response] = _messages((yield from _response(scope, response)))
    places = {response: _places(response, wanted) for response in said}
    result: list[Draft] = []
    for draft in drafts:
        name = _named(draft)
        texts = _meant(name, said[name.response], places[name.response]) if name in wanted and name else []
        result += [Draft("assistant", text, draft.response, draft.index) for text in texts] or [draft]
    return [msgspec.structs.replace(draft, index=at) for draft, at in zip(result, _indexes(result), strict=True)]


def _named(draft: Draft) -> _Name | None:
    if draft.kind != "other" or not isinstance(draft.value, Unknown) or '"id"' not in draft.value.wire:
        return None
    entry = canonical.decode(draft.value.wire)
    if not isinstance(entry, dict) or entry.get("type", "item_reference") != "item_reference":
        return None
    item = str(entry.get("id"))
    ours = _OURS.fullmatch(item)
    return _Name(item, ours[1] if ours else item)


def _response(scope: bytes, response: str) -> Lookups[list[Commit]]:
    """The commits of the response that is known under an id; none where there is none or more than one."""
    rows: Sequence[Seen] = yield LookUp([echo_digests.of_response(response)], scope, 2)
    found = {seen.response: seen for seen in rows}
    if len(found) != 1:
        return []
    seen = next(iter(found.values()))
    place = seen.session, seen.head.hash
    lines: _Lines = yield ReadLines(frozenset([place]))
    return [commit for commit in lines[place] if commit.response == seen.response]


def _messages(commits: Sequence[Commit]) -> list[list[Text]]:
    """The messages of a response: what stands between its calls and its reasoning."""
    messages: list[list[Text]] = []
    last = ""
    for commit in commits:
        if isinstance(commit.value, Text) and commit.kind == "assistant":
            if last != "assistant":
                messages.append([])
            messages[-1].append(commit.value)
        last = commit.kind
    return messages


def _places(response: str, wanted: set[_Name]) -> list[int]:
    """The places of the items that are named of a response, in their order."""
    return sorted(_place(name) for name in wanted if name.response == response)


def _place(name: _Name) -> int:
    ours = _OURS.fullmatch(name.item)
    return int(ours[2]) if ours else -1


def _meant(name: _Name, messages: Sequence[list[Text]], places: Sequence[int]) -> list[Text]:
    """The texts of the message that is meant, without what is opaque in them."""
    own = [text for message in messages for text in message if Carrier("item_id", name.item) in text.carriers]
    if not own and _OURS.fullmatch(name.item):
        at = places.index(_place(name))
        own = messages[at] if at < len(messages) else []
    return [Text(text.text, text.source_field) for text in own]


def _indexes(drafts: Sequence[Draft]) -> list[int]:
    """The places of drafts in their responses, which are more where a message has several texts."""
    counted: dict[str, int] = {}
    places: list[int] = []
    for draft in drafts:
        at = draft.index
        if at >= 0:
            at = counted.get(draft.response, 0)
            counted[draft.response] = at + 1
        places.append(at)
    return places
