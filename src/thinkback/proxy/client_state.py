"""What a client keeps for the gateway: opaque values of a provider, or whole blocks, sealed in one token.

Promises: a token that opens gives back exactly what was sealed, with its origin; one that does not open (made up, of
another tenant, key or end user) takes the value it stands for away. Must not: show what is inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple, Protocol, cast

import msgspec

from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, CarrierKind, Origin, Text, ThinkingBlock, ToolCall, carriers_of
from thinkback.model.commits import Draft, Request, Response, block_draft
from thinkback.wire.front import Front
from thinkback.wire.registry import front

PREFIX = "tb1."
"""How every token begins."""

UNSIGNED = f"{PREFIX}unsigned"
"""The token of one who seals nothing: for a signature that the provider did not give."""

MOST_OPENED = 64 << 20
"""Bytes that the tokens of one request may hold together."""

MOST_COMPARED = 500_000
"""What the tokens of one response hold, times its blocks: each is looked for among them."""

# The same in base64.
_ARMOURED = "dGIx"


class Sealing(Protocol):
    """Seals what leaves our hands. A token opens in the ``scope`` it was made for alone."""

    def seal(self, data: bytes, scope: bytes) -> str:
        """``data`` as a token."""
        ...

    def open(self, token: str, scope: bytes) -> bytes | None:
        """What was sealed; ``None`` for anything else."""
        ...


class Unsealed:
    """Opens ``UNSIGNED`` alone, as of ``origin``."""

    def __init__(self, origin: Origin) -> None:
        self._state = canonical.encode(State(origin, ""))

    def seal(self, data: bytes, scope: bytes) -> str:
        """Nothing but that there is no signature."""
        return UNSIGNED

    def open(self, token: str, scope: bytes) -> bytes | None:
        """What it stands for."""
        return self._state if token == UNSIGNED else None


class Minted(msgspec.Struct, frozen=True, omit_defaults=True):
    """Digests of the request that a response was minted under, where what it brought is bound to them, and its
    ``chain``, as in ``Request``.
    """

    system: str
    tools: str
    messages: str
    chain: tuple[int, str] | None = None


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one token holds: ``value`` is the provider's own opaque value, or ``blocks`` are neutral ones. With neither
    it stands for a signature that the provider did not give.
    """

    origin: Origin
    response: str
    value: str = ""
    blocks: tuple[Block, ...] = ()
    minted: Minted | None = None


class _Kept(NamedTuple):
    """The blocks of a token, and the place at which it stood among the others."""

    place: int
    blocks: tuple[Block, ...]


class Keeper:
    """Seals what one response brings. ``minted`` is given where the provider binds its reasoning to the request."""

    def __init__(self, sealing: Sealing, scope: bytes, origin: Origin, response: str, minted: Minted | None) -> None:
        self._sealing, self._scope = sealing, scope
        self._origin = origin
        self._response = response
        self._minted = minted
        self._sealed: dict[str, str] = {}

    def value(self, value: str) -> str:
        """The token for a provider's own value; the same one wherever it stands in the response."""
        if not value:
            return value
        known = self._sealed.get(value)
        if known is None:
            known = self._sealed[value] = self._token(State(self._origin, self._response, value, minted=self._minted))
        return known

    def unsigned(self) -> str:
        """The token for reasoning that came without a signature: it says whose it is, and nothing more."""
        known = self._sealed.get("")
        if known is None:
            known = self._sealed[""] = self._token(State(self._origin, self._response, minted=self._minted))
        return known

    def blocks(self, blocks: Sequence[Block]) -> str:
        """The token for blocks that the client's dialect has no place for; empty where nothing of them goes back."""
        kept = tuple(block for block in blocks if not (isinstance(block, ThinkingBlock) and block.marker))
        if not any(carriers_of(block) or isinstance(block, ThinkingBlock) for block in kept):
            return ""
        return self._token(State(self._origin, self._response, blocks=kept, minted=self._minted))

    def _token(self, state: State) -> str:
        return self._sealing.seal(canonical.encode(state), self._scope)


def holds_tokens(body: bytes) -> bool:
    """Whether a request may hold a token at all."""
    return PREFIX.encode() in body or _ARMOURED.encode() in body


class _Opener:
    """Opens the tokens of one request, ``MOST_OPENED`` bytes together: a token may hold a hundred times its length."""

    def __init__(self, sealing: Sealing, scope: bytes, erased: Set[str]) -> None:
        self._sealing, self._scope, self._erased, self._left = sealing, scope, erased, MOST_OPENED
        self.responses: set[str] = set()

    def state(self, token: str) -> State | None:
        """What ``token`` holds. Raises ``WireError`` for more than may be opened."""
        data = self._sealing.open(token, self._scope)
        self._left -= len(data or b"")
        if self._left < 0:
            raise WireError(
                f"what the request carries for the gateway has more than {MOST_OPENED} bytes",
                next_actions=("leave earlier messages out, or what stands in them of the gateway's",),
            )
        state = _read(data)
        if state is None or state.response in self._erased:
            return None
        self.responses |= {state.response} if state.response else set()
        return state


class Opened(NamedTuple):
    """A request's ``drafts``, and the ids of the ``responses`` that its tokens are of."""

    drafts: list[Draft]
    responses: frozenset[str]


def opened(
    drafts: Sequence[Draft], sealing: Sealing, scope: bytes, name: str, erased: Set[str] = frozenset()
) -> Opened:
    """``drafts`` of a request with every token opened: values and blocks as they were minted, with their origin.

    A token that does not open, or is of an ``erased`` response, is taken away with what it stood for. ``name`` is the
    dialect of the request, which gives tokens a form of its own. Raises ``WireError`` for more than ``MOST_OPENED``
    bytes.
    """
    result: list[Draft] = []
    opener, shape = _Opener(sealing, scope, erased), front(name)
    known: set[str] = set()
    for group in _responses(drafts):
        if group[0].kind == "response":
            group, own = _opened_response(group, opener, shape)
            if own and own not in known:  # its own id: erasing what is stored of it now voids its tokens, too
                known.add(own)
                group = [_of_response(draft, own) for draft in group]
        result += group
    return Opened(result, frozenset(opener.responses))


def _of_response(draft: Draft, response: str) -> Draft:
    value = draft.value
    if isinstance(value, Response) and value.origin.request:
        value = msgspec.structs.replace(value, origin=msgspec.structs.replace(value.origin, request=response))
    return msgspec.structs.replace(draft, response=response, value=value)


def _responses(drafts: Sequence[Draft]) -> Iterator[list[Draft]]:
    """The drafts one by one, those of a response together."""
    group: list[Draft] = []
    for draft in drafts:
        if group and (draft.kind == "response" or not draft.response or draft.response != group[0].response):
            yield group
            group = []
        if draft.kind == "response" or group:
            group.append(draft)
        else:
            yield [draft]
    if group:
        yield group


def _opened_response(group: list[Draft], opener: _Opener, shape: Front) -> tuple[list[Draft], str]:
    """A response with its tokens opened, and the id under which these were sealed, if it is one."""
    header, *rest = group
    blocks: list[Block] = []
    found: list[State] = []
    kept: list[_Kept] = []
    for draft in rest:
        block: Block | None = cast(Block, draft.value)
        for carrier in carriers_of(cast(Block, draft.value)):
            token = shape.bare(carrier.value)
            if token.startswith(PREFIX) and block is not None:
                state = opener.state(token)
                if state is not None:
                    found.append(state)
                    kept += [_Kept(len(blocks), state.blocks)] if state.blocks else []
                block = _replaced(block, carrier, state)
        if block is not None:
            blocks.append(block)
    if not found and len(blocks) == len(rest):
        return [header, *(block_draft(block, header.response, at) for at, block in enumerate(blocks))], ""
    sealed = {state.response for state in found}
    own = sealed.pop() if len(sealed) == 1 else ""
    return _drafts(header, _unnamed(_merged(_plain(header, blocks, found), kept)), found), own


def _unnamed(blocks: list[Block]) -> list[Block]:
    """``blocks`` with reasoning that names its item named no more where the text that it led to has lost its own name:
    a provider that knows items by their names would look for that text and refuse the request.
    """
    found: list[Block] = []
    follower: Block | None = None
    for block in reversed(blocks):
        if not isinstance(block, ThinkingBlock):
            follower = block
        elif isinstance(follower, Text) and not _carrier(follower, "item_id") and _carrier(block, "encrypted"):
            name = _carrier(block, "item_id")
            block = _with_value(block, name, None) if name else block
        found.append(block)
    return found[::-1]


def _carrier(block: Block, kind: CarrierKind) -> Carrier | None:
    return next((each for each in block.carriers if each.kind == kind), None)


def _plain(header: Draft, blocks: list[Block], found: Sequence[State]) -> list[Block]:
    """``blocks`` as the client wrote them, without wire objects that are not of the dialect they were minted in."""
    value = header.value
    assert isinstance(value, Response)
    if not found or found[0].origin.dialect == value.origin.dialect:
        return blocks
    return [msgspec.structs.replace(block, wire="") if isinstance(block, Text) else block for block in blocks]


def _drafts(header: Draft, blocks: Sequence[Block], found: Sequence[State]) -> list[Draft]:
    value = header.value
    assert isinstance(value, Response)
    drafts: list[Draft] = []
    if found:
        state = found[0]
        origin = state.origin
        if state.minted is not None:
            drafts.append(Draft("request", _record(state), header.response))
            origin = msgspec.structs.replace(origin, request=header.response)
        else:
            origin = msgspec.structs.replace(origin, request="")
        value = msgspec.structs.replace(value, origin=origin)
    value = msgspec.structs.replace(value, blocks=len(blocks))
    drafts.append(msgspec.structs.replace(header, value=value))
    return [*drafts, *(block_draft(block, header.response, at) for at, block in enumerate(blocks))]


def _replaced(block: Block, carrier: Carrier, state: State | None) -> Block | None:
    """``block`` with the value that the token stands for, else without; ``None`` where nothing of it is left."""
    if state is not None and (state.value or (carrier.kind == "signature" and not state.blocks)):
        return _with_value(block, carrier, state.value)
    return None if isinstance(block, ThinkingBlock) else _with_value(block, carrier, None)


def _with_value(block: Block, carrier: Carrier, value: str | None) -> Block:
    """``block`` with another value in the carrier's place, in what stands on the wire too; ``None`` takes it away."""
    if value is None:
        left = tuple(kept for kept in block.carriers if kept != carrier)
        return msgspec.structs.replace(block, carriers=left, wire="")
    changed = (Carrier(kept.kind, value) if kept == carrier else kept for kept in block.carriers)
    carriers = tuple(kept for kept in changed if kept.value)
    wire = block.wire.replace(carrier.value, value)
    if isinstance(block, ThinkingBlock) and block.signature == carrier.value:
        return msgspec.structs.replace(block, carriers=carriers, wire=wire, signature=value)
    return msgspec.structs.replace(block, carriers=carriers, wire=wire)


def _merged(blocks: Sequence[Block], kept: Sequence[_Kept]) -> list[Block]:
    """``blocks`` with those that were kept in tokens among them: a call or text takes the place of its echo, or is not
    said again where there is none; what clients have no word for stands behind the one before it, and the first of
    those in front of the one behind it.
    """
    if sum(len(one.blocks) for one in kept) * len(blocks) > MOST_COMPARED:
        raise WireError(f"one message carries too much for the gateway: {len(kept)} values")
    merged: list[Block | None] = list(blocks)
    if kept:
        # What is readable beside a token repeats what is in it.
        told = (isinstance(block, ThinkingBlock) and not carriers_of(block) for block in blocks)
        merged = [None if is_told else block for is_told, block in zip(told, blocks, strict=True)]
    taken: set[int] = set()
    for place, opened in reversed(kept):
        at = min(place, next((at for block in opened for at in _begins(merged, block, taken, place)), place))
        for block in opened:
            echo = _echo(merged, block, taken, place)
            if echo is not None:
                merged[echo] = block
                taken.add(id(block))
                at = echo + 1
            elif (run := _run(merged, block, taken)) is not None:
                merged[run.start : run.stop] = [block, *[None] * (len(run) - 1)]
                taken.add(id(block))
                at = run.stop
            elif not isinstance(block, Text | ToolCall) or (isinstance(block, Text) and not block.text.strip()):
                # Behind the last text rather than in front: a token does not stand last.
                is_last = isinstance(block, Text) and at == place == len(merged) - 1
                at += is_last
                merged.insert(at, block)
                at += 1
    return [block for block in merged if block is not None]


def _begins(merged: Sequence[Block | None], kept: Block, taken: Set[int], place: int) -> Iterator[int]:
    """Where the client's own words for ``kept`` begin, if it has any."""
    echo = _echo(merged, kept, taken, place)
    run = _run(merged, kept, taken) if echo is None else None
    if echo is not None:
        yield echo
    elif run is not None:
        yield run.start


def _run(merged: Sequence[Block | None], kept: Block, taken: Set[int]) -> range | None:
    """The texts in a row that are a text in pieces, as a client keeps it that makes a part of each event."""
    said = kept.text.strip() if isinstance(kept, Text) else ""
    start, text = 0, ""
    for at, block in enumerate(merged if said else ()):
        if not isinstance(block, Text) or id(block) in taken:
            start, text = at + 1, ""
            continue
        text += block.text
        if text.strip() == said:
            return range(start, at + 1)
    return None


def _echo(merged: Sequence[Block | None], kept: Block, taken: Set[int], place: int) -> int | None:
    """Where the client's own word for ``kept`` stands, from ``place`` on or before it."""
    places = (*range(place, len(merged)), *range(place))
    return next((at for at in places if _echoes(merged[at], kept) and id(merged[at]) not in taken), None)


def _echoes(block: Block | None, kept: Block) -> bool:
    match block, kept:
        case ToolCall(), ToolCall() if block.name == kept.name:
            # A call without an id was given one for the client.
            return block.id == kept.id if kept.id else _value(block.arguments) == _value(kept.arguments)
        case Text(), Text():
            return block.text.strip() == kept.text.strip()
        case _:
            return False


def _value(arguments: str) -> object:
    """What the arguments say, whatever wrote them."""
    try:
        return canonical.decode(arguments or "{}")
    except msgspec.DecodeError:
        return arguments


def _record(state: State) -> Request:
    minted = state.minted
    assert minted is not None
    return Request(
        target={},
        settings={},
        rules=(),
        params="{}",
        head="",
        system_digest=minted.system,
        tools_digest=minted.tools,
        messages_digest=minted.messages,
        carriers_digest="",
        sent_digest="",
        basis_digest="",
        chain=minted.chain,
    )


def _read(data: bytes | None) -> State | None:
    if data is None:
        return None
    try:
        return canonical.decode(data, State)
    except msgspec.DecodeError:
        return None


def minted_of(record: Request) -> Minted:
    """The digests of a request's record."""
    return Minted(record.system_digest, record.tools_digest, record.messages_digest, record.chain)
