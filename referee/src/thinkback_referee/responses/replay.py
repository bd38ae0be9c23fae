"""The rules about reasoning that comes back: found, readable, unaltered, its own, and together with what it led to."""

from __future__ import annotations

from collections.abc import Iterator

from ..jsons import as_text
from ..verdict import Verdict
from .ledger import Made
from .profiles import Host
from .refusals import item_not_found, refuse, refuse_upstream, unverified
from .request import Item, Request

BARE = "Invalid 'input[{index}]': a reasoning item needs an id or encrypted_content."
CHANGED = "The reasoning text of {place} is not the one that was issued"
FOREIGN = "The reasoning text of {place} was issued by another provider"
OWN = (BARE, CHANGED, FOREIGN)
_OPAQUE = ("reasoning", "compaction")


def unresolved(request: Request) -> Iterator[Verdict]:
    """Refuse references, and reasoning without content, that are not stored (E3)."""
    host = request.profile.host
    for item in request.items:
        if item.kind == "item_reference":
            yield item_not_found(host, item.id, item.index, store=request.store)
        if item.kind != "reasoning" or item.carrier or item.index < 0 or not host.ids_resolve:
            continue
        if not item.id:
            yield _bare(host, item)
        made = request.ledger.named(item.id)
        if not request.store or made is None or not request.readable(made):
            yield item_not_found(host, item.id, item.index, store=request.store)


def _bare(host: Host, item: Item) -> Verdict:
    """The refusal of a reasoning item that has neither encrypted content nor an id."""
    reason = f"no carrier at input[{item.index}]"
    if host.unfound:
        return item_not_found(host, item.id, item.index, store=False)
    if host.undecryptable:
        return refuse(host, BARE.format(index=item.index), reason, param="input")
    # Reported of OpenAI (Wei-Shaw/sub2api#3138): the same as for content that cannot be read.
    return unverified(host, item.id, item.carrier, reason)


def unreadable(request: Request) -> Iterator[Verdict]:
    """Refuse encrypted content that was altered, or minted elsewhere, or belongs to another item (E4)."""
    profile = request.profile
    for place, item in enumerate(request.items):
        if item.kind not in _OPAQUE or not item.carrier or item.index < 0 or profile.raw:
            continue
        made = request.ledger.carried(item.carrier)
        where = f"input[{item.index}]"
        if made is None or made.origin.host != profile.host.name:
            yield unverified(profile.host, item.id, item.carrier, f"{'foreign' if made else 'changed'} at {where}")
        elif item.id and item.id not in made.ids:
            yield unverified(profile.host, item.id, item.carrier, f"content of another item at {where}")
        # Of compactions no report says that they were left out: they are refused (openai/codex#35334).
        refuses = item.kind == "compaction" or not profile.drops_silently
        if refuses and request.withheld(place, item) in ("organization_mismatch", "model_mismatch"):
            yield unverified(profile.host, item.id, item.carrier, f"foreign at {where}")


def foreign_ids(request: Request) -> Iterator[Verdict]:
    """Refuse the id of an item that another host or account minted: stricter than a host that resolves none."""
    host = request.profile.host
    for item in request.items if host.pairs else ():
        made = request.ledger.named(item.id) if item.id and item.kind != "reasoning" else None
        if made and (made.origin.host, made.origin.account) != (host.name, request.account):
            yield item_not_found(host, item.id, item.index, store=request.store)


def without_follower(request: Request) -> Iterator[Verdict]:
    """Refuse reasoning with an id that does not stand directly before what it led to (E1).

    Whether the real server checks the position or only presence is unconfirmed.
    """
    if not request.profile.host.pairs:
        return
    for place, item in enumerate(request.items):
        made = request.made(item) if item.kind == "reasoning" and item.id and item.index >= 0 else None
        if made is None:
            continue
        after = [other for other in request.items[place + 1 :] if not _same_response(request, other, made)]
        if not after or not _follows(request, after[0], made):
            message = f"Item '{item.id}' of type 'reasoning' was provided without its required following item."
            yield refuse(request.profile.host, message, f"no following item at input[{item.index}]", param="input")


def without_reasoning(request: Request) -> Iterator[Verdict]:
    """Refuse an item with an id whose reasoning did not come back before it (E2)."""
    if not request.profile.host.pairs:
        return
    present: set[Made] = set()
    for item in request.items:
        made = request.made(item)
        if made is not None and item.kind == "reasoning":
            present.add(made)
        if made is None or item.kind == "reasoning" or not item.id or item.id not in made.ids:
            continue
        for needed in request.ledger.reasoning(made):
            if needed not in present:
                message = (
                    f"Item '{item.id}' of type '{item.kind}' was provided without its required 'reasoning' item: "
                    f"'{needed.ids[0]}'."
                )
                yield refuse(request.profile.host, message, f"no reasoning before input[{item.index}]", param="input")


def altered_text(request: Request) -> Iterator[Verdict]:
    """Refuse raw reasoning that is not what was minted under its id, or that another host minted.

    Stricter than the hosts, which cannot tell; their texts are therefore not known.
    """
    host = request.profile.host
    for item in request.items:
        if item.kind != "reasoning" or not request.profile.raw or not item.text:
            continue
        made = request.ledger.named(item.id) if item.id else None
        others = request.ledger.thought(item.text)
        where = f"input[{item.index}]"
        if made and made.origin.host == host.name and made.thought != item.text:
            yield refuse_upstream(host, CHANGED.format(place=where), f"changed at {where}")
        if others and all(other.origin.host != host.name for other in others):
            yield refuse_upstream(host, FOREIGN.format(place=where), f"foreign at {where}")


def _same_response(request: Request, item: Item, made: Made) -> bool:
    other = request.made(item) if item.kind == "reasoning" else None
    return other is not None and other.group == made.group


def _follows(request: Request, item: Item, made: Made) -> bool:
    for follower in request.ledger.followers(made):
        if item.id in follower.ids or (not item.id and item.call_id and item.call_id == follower.call_id):
            return item.kind == as_text(follower.kind)
    return False
