"""What the gateway must know of a request before anything else: who asks which model for what kind of response.

Promises: a body that cannot be one of its dialect is refused here, with the key at fault; what only a provider can
judge is left to it. Costs no more than a look at each key. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from thinkback.errors import WireError
from thinkback.gateway.engine.repeated import check_keys
from thinkback.model import canonical
from thinkback.model.target import lookup
from thinkback.turn.translation import own_fields
from thinkback.wire import registry
from thinkback.wire.documents import is_too_deep
from thinkback.wire.front import Body, Kind


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


_KINDS: Mapping[Kind, tuple[type, ...]] = {"boolean": (bool,), "list": (list,), "object": (dict,), "text": (str,)}


def read_body(data: bytes) -> dict[str, Any]:
    """The JSON object that a request is. Raises ``WireError`` for what is none, has too many levels, or a key twice."""
    try:
        body = canonical.decode(data)
    except msgspec.DecodeError as error:
        raise WireError(f"the request is not JSON: {error}", next_actions=("send one JSON object",)) from None
    if not isinstance(body, dict):
        raise WireError("the request is no JSON object", next_actions=("send one JSON object",))
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
        f"{key} is missing, empty, or no {kind}" if why else f"{key} is no {kind}",
        details={"parameter": key},
        next_actions=(f"give {key} as {wanted}" + (f": {why}" if why else ""),),
    )
