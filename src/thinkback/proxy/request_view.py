"""A client's request as values: whose it is, what it wants, what it says and what it names.

Promises: a body that cannot be one of its dialect is refused here, with the key at fault, and so is one in which a key
stands twice in an object (readers differ in which of the two they take); what only a provider can judge is left to it.
Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from thinkback.errors import WireError
from thinkback.log.twins import Marks, context_of, digest_of
from thinkback.model import canonical
from thinkback.model.blocks import Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown, carriers_of
from thinkback.model.commits import Draft, Response
from thinkback.model.target import lookup
from thinkback.proxy import client_state, recognition
from thinkback.proxy.client_state import Sealing
from thinkback.proxy.problems import Refused
from thinkback.proxy.retention import Recording
from thinkback.session.ids import new_id
from thinkback.turn.own_fields import own_fields
from thinkback.wire import registry
from thinkback.wire.documents import is_too_deep
from thinkback.wire.front import Body, Field, Kind
from thinkback.wire.result import ReadRequest

CONVERSATION = "thinkback-conversation"
"""The header by which a client names a conversation."""
_NESTING = (dict, list)
_LONGEST = 200
# Below these a key is the client's own word.
_FOREIGN = frozenset(
    {"args", "arguments", "input_schema", "json_schema", "parametersJsonSchema", "properties", "responseSchema"}
)
_OF_TOOLS = frozenset({"function", "functionDeclarations", "function_declarations", "functionCall", "function_call"})


class Client(msgspec.Struct, frozen=True):
    """Who asks. ``limited``: only for some models. ``alone``: nobody else uses the accounts of the upstreams."""

    tenant: str
    key: str
    recording: Recording = "full"
    limited: bool = False
    alone: bool = False

    @property
    def records(self) -> bool:
        """Whether anything of a request is recorded."""
        return self.recording != "off"

    @property
    def withholds(self) -> bool:
        """Whether something of what is said is not to be recorded, and something is."""
        return self.recording not in ("full", "off")

    def scope(self, end_user: str) -> bytes:
        """What neither a look-up nor a sealed value may leave: this tenant, key and end user, as 16 bytes."""
        named = f"{self.tenant}\n{self.key}\n{end_user}"
        return hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()[:16]


class Beginning(NamedTuple):
    """The session (id and name) that a conversation goes into which is not recognised."""

    session: str
    name: str


class Received(NamedTuple):
    """One request for a response, as it came.

    ``front`` is the dialect that the client speaks. ``model`` and ``streams`` are what the address says, where it does
    (Gemini), else ``""`` and ``None``: then the body does. ``headers`` are those of the client, in lower case, without
    credentials and what is between two hops. ``origin`` is who minted the reasoning and opaque values that the client
    sends back on its own account, where that is known, end user aside: a client inside the program asks them itself.
    ``verbatim``: such a client gets what came as it came, whatever it asked for. ``as_written`` is why its request goes
    as it came, without anything of ours. ``conversation`` is the name that its program gives the conversation, and
    ``instance`` tells one client of a process from another; both may be unknown.
    """

    front: str
    body: bytes
    headers: Mapping[str, str]
    client: Client
    model: str = ""
    streams: bool | None = None
    counts_only: bool = False
    origin: Origin | None = None
    beginning: Beginning | None = None
    verbatim: bool = False
    as_written: str = ""
    conversation: str = ""
    instance: str = ""


class Facts(msgspec.Struct, frozen=True):
    """What a request says of itself.

    ``end_user`` is empty where none is named. ``messages`` is how many there are. ``previous_response`` is the id of a
    response that the request goes on from. ``wants_usage``: token counts are shown in a stream. ``takes_reasoning``:
    the client's program may be given blocks of reasoning. ``own`` are the paths of fields that are for one provider.
    """

    model: str
    streams: bool
    messages: int
    end_user: str = ""
    previous_response: str = ""
    wants_usage: bool = True
    takes_reasoning: bool = True
    own: tuple[str, ...] = ()

    @property
    def hides_counts(self) -> bool:
        """Whether token counts of a stream are for the gateway alone."""
        return self.streams and not self.wants_usage


class View(NamedTuple):
    """``request`` is as its dialect reads it, ``known`` the same with every token opened.

    ``stored`` are the paths at which it names what an upstream's account keeps, ``sealed`` the ids of the responses
    that its tokens are of.
    """

    received: Received
    facts: Facts
    scope: bytes
    request: ReadRequest
    known: recognition.Request
    stored: tuple[str, ...]
    sealed: frozenset[str] = frozenset()


_KINDS: Mapping[Kind, tuple[type, ...]] = {"boolean": (bool,), "list": (list,), "object": (dict,), "text": (str,)}


def read_body(data: bytes) -> dict[str, Any]:
    """The JSON object that a request is. Raises ``WireError`` for what is none, has too many levels, or a key twice."""
    try:
        body = canonical.decode(data)
    except msgspec.DecodeError as error:
        raise WireError(f"the request is not JSON: {error}", next_actions=("send one JSON object",)) from None
    if not isinstance(body, dict):
        raise WireError("the request is not a JSON object", next_actions=("send one JSON object",))
    if is_too_deep(data, body):
        raise WireError("the request has too many levels", next_actions=("send objects and lists less deep",))
    check_keys(data, body)
    return body


def read_facts(front: str, body: Mapping[str, Any], *, model: str = "", streams: bool | None = None) -> Facts:
    """The facts of a ``body`` of dialect ``front``; ``model`` and ``streams`` are what the address says, where it does.

    Raises ``WireError``, which names the key at fault in ``details["parameter"]``.
    """
    shape, normal = registry.front(front).body, registry.dialect(front).parameters.normal
    params = {key: value for key, value in body.items() if key != shape.messages}
    params = normal(params) if normal is not None else params
    # No key need be there, and ``null`` is as good as none.
    for key, kind in shape.kinds.items():
        if params.get(key) is not None and not isinstance(params[key], _KINDS[kind]):
            raise _wrong(key, kind)
    named = model or params.get("model")
    if not isinstance(named, str) or not named:
        raise _wrong("model", "text", "it says which model is to answer")
    count = _count(shape, body)
    return Facts(
        model=named,
        streams=params.get("stream") is True if streams is None else streams,
        messages=count,
        end_user=_end_user(shape, params),
        previous_response=params.get(shape.previous) or "" if shape.previous else "",
        wants_usage=not shape.usage or lookup(params, shape.usage) is True,
        takes_reasoning=not shape.thinking or lookup(params, shape.thinking) not in (None, "disabled"),
        own=own_fields(front, body),
    )


def _count(shape: Body, body: Mapping[str, Any]) -> int:
    """How many messages there are; none only where a request goes on from what somebody keeps."""
    key = shape.messages
    messages = body.get(key)
    if shape.one_message is not None and isinstance(messages, shape.one_message):
        return 1
    if messages is None and any(body.get(name) for name in shape.continues):
        return 0
    if not isinstance(messages, list) or not messages:
        raise _wrong(key, "list", "it is the conversation so far")
    return len(messages)


def _end_user(shape: Body, params: dict[str, Any]) -> str:
    for path in shape.end_user:
        value = lookup(params, path)
        if value is not None and not isinstance(value, str):
            raise _wrong(path, "text")
        if value:
            return str(value)
    return ""


def _wrong(key: str, kind: Kind, why: str = "") -> WireError:
    wanted = {"text": "a text", "boolean": "true or false", "object": "an object", "list": "a list"}[kind]
    return WireError(
        f"{key} is missing, empty, or not {wanted}" if why else f"{key} is not {wanted}",
        details={"parameter": key},
        next_actions=(f"give {key} as {wanted}" + (f": {why}" if why else ""),),
    )


def view_of(
    received: Received,
    body: Mapping[str, Any],
    facts: Facts,
    sealing: Sealing | None,
    erased: Set[str] = frozenset(),
) -> View:
    """``received``, whose ``body`` and ``facts`` are known. Without ``sealing`` there are no tokens but ``UNSIGNED``;
    tokens of ``erased`` responses do not open.

    Raises ``WireError`` for what is none of its dialect, ``Refused`` where it names other models than its client may.
    """
    client, name = received.client, received.front
    if client.limited:
        _check_models(name, body)
    stored = () if client.alone else tuple(named(registry.front(name).body.stored, body))
    scope = client.scope(facts.end_user)
    request = registry.dialect(name).read_request(body, new_id, Origin(name, "", ""))
    drafts = tuple(_without_beginning(_once(request.drafts)))
    request = msgspec.structs.replace(request, drafts=drafts)
    if received.origin is not None:
        origin = msgspec.structs.replace(received.origin, end_user=facts.end_user)
        drafts = tuple(_vouched(drafts, origin))
        if sealing is None and client_state.UNSIGNED.encode() in received.body:
            sealing = client_state.Unsealed(origin)
    sealed: frozenset[str] = frozenset()
    if sealing is not None and client_state.holds_tokens(received.body):
        found, sealed = client_state.opened(drafts, sealing, scope, name, erased)
        drafts = tuple(found)
    known = recognition.request_of(drafts, facts.previous_response, _marks(received, drafts))
    return View(received, facts, scope, request, known, stored, sealed)


def _marks(received: Received, drafts: Sequence[Draft]) -> Marks:
    """By what its conversation is told from others with equal words."""
    name = received.conversation or received.headers.get(CONVERSATION, "")
    return Marks(digest_of("name", name), context_of(drafts), digest_of("instance", received.instance))


def _once(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """``drafts`` without results that repeat one of the same call word for word: some clients resume so."""
    seen: set[tuple[str, str]] = set()
    for draft in drafts:
        value = draft.value
        if draft.kind == "response":
            seen.clear()
        if isinstance(value, ToolResult) and value.id:
            if (value.id, value.content) in seen:
                continue
            seen.add((value.id, value.content))
        yield draft


def _without_beginning(drafts: Iterable[Draft]) -> list[Draft]:
    """``drafts`` whose last response, if it is reasoning alone and nothing follows it, is one that did not complete:
    some clients keep what they got of one that broke off, and ask again with it.
    """
    said = list(drafts)
    at = next((at for at in range(len(said) - 1, -1, -1) if said[at].kind != "reasoning"), -1)
    header = said[at].value if 0 <= at < len(said) - 1 else None
    if isinstance(header, Response):
        said[at] = msgspec.structs.replace(said[at], value=msgspec.structs.replace(header, complete=False))
    return said


def _vouched(drafts: Sequence[Draft], origin: Origin) -> Iterator[Draft]:
    """``drafts`` whose responses are of ``origin`` where they bring reasoning or an opaque value."""
    minted = {draft.response for draft in drafts if _is_minted(draft)}
    for draft in drafts:
        if isinstance(draft.value, Response) and draft.response in minted:
            yield msgspec.structs.replace(draft, value=msgspec.structs.replace(draft.value, origin=origin))
        else:
            yield draft


def _is_minted(draft: Draft) -> bool:
    match draft.value:
        case ThinkingBlock():
            return True
        case Text() | ToolCall() | Media() | Unknown():
            return draft.response != "" and carriers_of(draft.value) != ()
        case _:
            return False


def check_length(facts: Facts, most: int) -> None:
    """Raise ``WireError`` for more than ``most`` messages."""
    if facts.messages > most:
        raise WireError(f"the request has {facts.messages} messages, and {most} are allowed")


def _check_models(front: str, body: Mapping[str, Any]) -> None:
    """Raise ``Refused`` where a request of a client that is limited to models names others."""
    for path in named(registry.front(front).body.models, body):
        raise Refused(
            403,
            "names_other_models",
            f"this key is limited to models, and {path} may lead to others: leave it out",
            details={"param": path},
        )


def check_stored(paths: Sequence[str], upstream: str) -> None:
    """Raise ``Refused`` for names of what the account of ``upstream`` keeps: all keys share it."""
    for path in paths:
        raise Refused(
            403,
            "names_shared_state",
            f"{path} stands for something in the upstream's account, which all keys share: send the content itself, "
            f'or have the gateway\'s configuration say stored = "pass" under [upstreams.{upstream}]',
            details={"param": path},
        )


def check_served(name: str, body: Mapping[str, Any]) -> None:
    """Raise ``Refused`` for a request of the dialect ``name`` that needs state which only a provider holds."""
    for each in registry.front(name).body.unserved:
        if lookup(dict(body), each.path) == each.value:
            raise Refused(400, each.code, each.message, details={"param": each.path})


def named(fields: tuple[Field, ...], body: Mapping[str, Any]) -> Iterator[str]:
    """The paths of ``body`` at which one of ``fields`` names something.

    Arguments and schemas of tools, whose names are the client's own, are not looked into.
    """
    yield from (field.key for field in fields if not field.under and _is_in(field, body))
    for under in dict.fromkeys(field.under for field in fields if field.under):
        if body.get(under):
            yield from _below([field for field in fields if field.under == under], body[under], under)


def _below(fields: Sequence[Field], value: Any, path: str) -> Iterator[str]:
    begins = [(field.key.partition(".")[0], field) for field in fields]
    level = [(path, value)]
    while level:
        path, value = level.pop()
        if isinstance(value, list):
            level += [(f"{path}[{at}]", each) for at, each in enumerate(value) if isinstance(each, dict | list)]
        elif isinstance(value, dict):
            yield from (path for first, field in begins if not first and field.names(value))
            yield from (f"{path}.{field.key}" for first, field in begins if first in value and _is_in(field, value))
            level += [
                (f"{path}.{key}", each)
                for key, each in value.items()
                if isinstance(each, dict | list) and _goes_on(key, each, path)
            ]


def _is_in(field: Field, value: Mapping[str, Any]) -> bool:
    """Whether ``value`` has the field, and the field names something."""
    found: Any = value
    for key in field.key.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return bool(found) and field.names(found)


def _goes_on(key: str, value: dict[str, Any] | list[Any], path: str) -> bool:
    if key in _FOREIGN or (key in _OF_TOOLS and path.startswith("tools")):
        return False
    # what a tool is called with, or answers with, as an object
    return not (isinstance(value, dict) and key in ("input", "response"))


class _Pairs(list[tuple[str, Any]]):
    """The members of an object as they were written."""


def check_keys(data: bytes, body: dict[str, Any]) -> None:
    """Raise ``WireError`` where a key of ``data`` is not in ``body``, as which it was read: another took its place."""
    read = _read(body)
    if _at_most(data) == read or _written(data) == read:
        return
    path = _first(json.loads(data.decode("utf-8", "surrogatepass"), object_pairs_hook=_Pairs))
    where = path if len(path) <= _LONGEST else f"{path[:_LONGEST]}..."
    raise WireError(f"{where} stands twice in the request", details={"param": where}, next_actions=("send it once",))


def _at_most(data: bytes) -> int:
    """No fewer keys than are written, mostly as many: quotation marks with a colon behind them that nothing escapes.

    A text that begins with a colon counts as well, and so does one with backslashes before such a mark.
    """
    packed = data.translate(None, b" \t\r\n")
    return packed.count(b'":') - packed.count(b'\\":') + packed.count(b'\\\\":')


def _written(data: bytes) -> int:
    """How many keys are written: what is followed by a colon outside of texts."""
    if b"\\" in data:
        # pairs of backslashes first: what is left before a quotation mark escapes it
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return sum(part.count(b":") for part in data.split(b'"')[::2])


def _read(body: dict[str, Any]) -> int:
    """How many keys were read."""
    found = 0
    level: list[Any] = [body]
    while level:
        found += sum(len(value) for value in level if type(value) is dict)
        level = [
            value
            for outer in level
            for value in (outer.values() if type(outer) is dict else outer)
            if type(value) in _NESTING
        ]
    return found


def _first(body: Any) -> str:
    """The path of the first key that stands twice."""
    waiting = [("", body)]
    while waiting:
        path, value = waiting.pop()
        members = [(f"[{at}]", each) for at, each in enumerate(value)]
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, _ in value:
                if key in seen:
                    return f"{path}.{key}".removeprefix(".")
                seen.add(key)
            members = [(f".{key}", each) for key, each in value]
        waiting += [(f"{path}{step}", each) for step, each in reversed(members) if isinstance(each, list)]
    raise AssertionError("a key that was written and not read stands twice")
