"""Which API a request is for: the end of its path names the dialect, its host the endpoint. Pure.

Must not: guess. A host that no endpoint names, or that does not speak what is asked of it, is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from thinkback.drive.auth.account import account as account_of
from thinkback.errors import SettingError
from thinkback.model.rule import Endpoint
from thinkback.rules import Rulebook
from thinkback.rules.book import UNKNOWN
from thinkback.rules.urls import normalise_url
from thinkback.turn.credentials import CREDENTIALS
from thinkback.wire.registry import FRONTS, front

_CALL = re.compile(r"(?P<base>.*)/models/(?P<model>[^/]+):(?P<call>[A-Za-z]+)")
# Who sends a request, in the query; Google's.
_KEY = "key"


class Api(NamedTuple):
    """A request of dialect ``front`` to ``base_url``, a place of ``endpoint``. ``model`` and ``streams`` are what the
    address says, where it does.
    """

    front: str
    endpoint: Endpoint
    base_url: str
    model: str = ""
    streams: bool | None = None


class Unknown(NamedTuple):
    """A request that is none of ours, and why; ``unnamed``: only for want of a name for its host."""

    why: str
    unnamed: bool = False


class _Asked(NamedTuple):
    """What the path alone says."""

    front: str
    base: str
    model: str = ""
    streams: bool | None = None


class Apis:
    """The APIs that requests of one program are for; ``endpoint`` names the place where the host does not, and
    ``anywhere`` takes every host for one.
    """

    def __init__(self, rulebook: Rulebook, endpoint: str = "", *, anywhere: bool = False) -> None:
        self._rulebook, self._endpoint, self._anywhere = rulebook, endpoint, anywhere
        self._known: dict[str, Api | Unknown] = {}

    def of(self, method: str, url: str) -> Api | Unknown:
        """The API that ``url`` is of."""
        if method != "POST":
            return Unknown(f"{method} asks for no response of a model")
        address, _, query = url.partition("?")
        streams_as = "sse" if "alt=sse" in query else ""
        found = self._known.get(address + streams_as)
        if found is None:
            if len(self._known) >= 256:
                self._known.clear()
            found = self._known[address + streams_as] = self._found(address, streams_as)
        return found

    def _found(self, address: str, streams_as: str) -> Api | Unknown:
        asked = _asked(address)
        if isinstance(asked, Unknown):
            return asked
        if asked.streams and not streams_as:
            return Unknown("a stream that is a JSON array is not read: ask with alt=sse")
        try:
            base = normalise_url(asked.base)
        except SettingError as error:
            return Unknown(error.message)
        book = self._rulebook
        place = book.endpoint(self._endpoint) if self._endpoint else book.endpoint_for_url(base)
        if place.id == UNKNOWN and not self._anywhere:
            named = urlsplit(base).netloc
            return Unknown(f"no endpoint is known at {named}: name it with endpoint=", unnamed=True)
        spoken = book.speaking(place.id, asked.front)
        if spoken.dialect != asked.front and not self._anywhere:
            return Unknown(f"{place.id} is not known to speak {asked.front}")
        prefix = spoken.path.partition("/models/")[0] if asked.model else ""
        return Api(asked.front, spoken, base.removesuffix(prefix), asked.model, asked.streams)


def _asked(address: str) -> _Asked | Unknown:
    call = _CALL.fullmatch(address)
    for name in FRONTS:
        known = front(name).address
        for path, counts in known.paths.items():
            if address.endswith(path):
                return Unknown("it only counts tokens") if counts else _Asked(name, address.removesuffix(path))
        if call and call["call"] in known.calls:
            return _Asked(name, call["base"], unquote(call["model"]), known.calls[call["call"]])
    return Unknown("the path is of no API that has reasoning")


class Sender(NamedTuple):
    """Who sends a request: the account, as for ``Target``, and the texts that must be shown nowhere."""

    account: str
    account_known: bool
    secrets: frozenset[str]

    def __repr__(self) -> str:
        return f"<Sender {self.account}>"


def sender_of(api: Api, headers: Mapping[str, str], query: str) -> Sender:
    """Who sends a request with ``headers`` (names in lower case) and ``query``."""
    shown = [value.rpartition(" ")[2] for name, value in headers.items() if name in CREDENTIALS]
    shown += parse_qs(query).get(_KEY, []) if f"{_KEY}=" in query else []
    account, known = account_of(api.endpoint, api.base_url, headers, shown[0] if shown else None)
    return Sender(account, known, frozenset(shown))
