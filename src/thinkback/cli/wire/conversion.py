"""A request body of one dialect as a request of another, through the neutral waist. Reads and prints nothing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from thinkback.cli.dialect_endpoints import sibling, url_of
from thinkback.errors import NotFoundError
from thinkback.log.seal import seal
from thinkback.model.blocks import Origin
from thinkback.model.commits import Head, Step
from thinkback.model.rule import Endpoint
from thinkback.model.target import Settings, Target, merge
from thinkback.rules import Rulebook
from thinkback.turn.own_fields import not_for, own_fields
from thinkback.turn.plan import History, Plan
from thinkback.turn.translation import plan_without_refused, translate
from thinkback.wire.registry import dialect
from thinkback.wire.result import WantedOptions


class Converted(NamedTuple):
    """The request of the other dialect, and which parameters stayed behind, each with the reason."""

    plan: Plan
    left: tuple[str, ...]


class Way(NamedTuple):
    """From which dialect to which; where the request is to go (else to the maker of the dialect), for which model.

    ``minted_by`` is the endpoint and model that made the opaque values in the body: without it nobody knows, and they
    stay behind.
    """

    source: str
    target: str
    endpoint: str = ""
    model: str = ""
    minted_by: tuple[str, str] | None = None


def convert(body: Mapping[str, Any], way: Way, book: Rulebook, on: str, settings: Settings) -> Converted:
    """``body`` for the way's target; its reasoning counts as asked for, because it stands in it.

    Raises ``WireError`` for a body that is none, ``NotFoundError``, and whatever planning a request raises.
    """
    known = dialect(way.source)
    dialect(way.target)  # one that does not exist is told as such
    ids = (f"r{number}" for number in itertools.count())
    read = known.read_request(body, lambda: next(ids), _origin(way, book, on))
    target = _target(way, book, on, read.model)
    asked = settings.explicit | {"reasoning.includeInContext"}
    settings = msgspec.structs.replace(settings, include_in_context=True, explicit=asked)
    own = not_for(target.endpoint, own_fields(way.source, body))
    given = {key: value for key, value in read.params.items() if key not in own}
    done = translate(way.source, target, given, settings, read.amid)
    params, left = done.params, (*done.left, *own.values())
    if way.source != way.target and read.params.get("stream"):
        endpoint = target.endpoint
        params = merge(
            dialect(way.target).options(WantedOptions(not endpoint.stream_path, endpoint.stream_usage)), params
        )
        left = left if params.get("stream") else (*left, "stream: the address says it")
    history = History(seal(Step("convert", tuple(read.drafts), 0), Head()))
    plan, refused = plan_without_refused(history, target, done.settings, params)
    return Converted(plan, (*left, *refused))


def _target(way: Way, book: Rulebook, on: str, named: str) -> Target:
    endpoint = _speaking(book, way.endpoint or dialect(way.target).maker, way.target)
    model = way.model or named
    if not model:
        raise NotFoundError("no model is set", next_actions=("give --model",))
    return book.target(endpoint.id, model, base_url=url_of(endpoint, endpoint.id), on=on)


def _speaking(book: Rulebook, name: str, spoken: str) -> Endpoint:
    """The endpoint ``name``, or the one of the same provider that speaks the dialect."""
    book.endpoint(name)  # an unknown one is told as such
    found = sibling(book, name, spoken)
    if found is None:
        raise NotFoundError(
            f"{name} does not speak {spoken}", next_actions=("`thinkback endpoints` lists them with their dialects",)
        )
    return found


def _origin(way: Way, book: Rulebook, on: str) -> Origin:
    if way.minted_by is None:
        return Origin(way.source, "", "")
    name, model = way.minted_by
    endpoint = _speaking(book, name, way.source)
    target = book.target(endpoint.id, model, base_url=url_of(endpoint, endpoint.id), on=on)
    return Origin(way.source, target.base_url, model, model, target.account, target.account_known)
