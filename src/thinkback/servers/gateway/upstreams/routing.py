"""From the model that a client asks for to where its request goes, and where it goes when that fails.

Promises: what a place is, its key included, is found once per configuration and day; a conversation goes where its
reasoning is valid, if that place is among the candidates and answers; a place that fails again and again is left alone
for a while, then tried with one request. Must not: send anything, or show a client the name of a key.
"""

from __future__ import annotations

import os
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple, Protocol

import msgspec

from thinkback.compile import guard
from thinkback.drive.auth import NO_CREDENTIALS, Keyring
from thinkback.drive.auth.account import account as account_of
from thinkback.errors import CredentialError, NetworkError, NotFoundError, ThinkbackError
from thinkback.model.blocks import Origin
from thinkback.model.rule import Endpoint
from thinkback.model.target import model_matches
from thinkback.proxy.events import Route
from thinkback.proxy.problems import Refused, public_reason
from thinkback.servers.gateway.config import naming
from thinkback.servers.gateway.config.checking import REFERENCE, endpoint_of
from thinkback.servers.gateway.config.schema import Alias, Config, To, Upstream
from thinkback.servers.gateway.grant import Grant
from thinkback.servers.gateway.own import Own, OwnKey, moved, no_credential
from thinkback.servers.gateway.secrets.secret import text_of
from thinkback.servers.gateway.upstreams.breakers import Breakers
from thinkback.session.config import keys, today
from thinkback.session.endpoint_config import EndpointConfig, Rulebook
from thinkback.turn.credentials import Authenticator
from thinkback.wire.registry import FRONTS
from thinkback.wire.registry import front as front_of

KEY_REFUSED = (401, 402)
"""Answers that are about the key, whatever is asked."""
_KEPT = 512
"""Routes that are remembered: clients name models of the catalogue, as many as they like."""


_ANY = "own:"
"""The account of a place whose client pays, before the client is known."""
_UNMARKED = tuple(name for name in FRONTS if not front_of(name).address.header)
"""What clients may speak that say it by their path alone."""


class _Asker(NamedTuple):
    """Who asks, with which credential of its own."""

    grant: Grant
    own: Own | None


class Catalogue(Rulebook, Protocol):
    """What a router needs of the rules: places, and the models that are known by name."""

    def served(self, endpoint: str) -> Sequence[str]: ...

    def endpoints(self) -> Sequence[Endpoint]: ...


class Choice:
    """The places of one request, in the order in which they are tried."""

    def __init__(self, routes: Sequence[Route], breakers: Breakers) -> None:
        self._left = iter(routes)
        self._breakers = breakers
        self._is_told = False
        self._current = self._next()
        if self._current is None:
            raise _all_resting(routes, breakers)

    @property
    def current(self) -> Route:
        """Where the request goes now."""
        assert self._current is not None
        return self._current

    def fail_over(self, reason: str) -> str:
        """The current place did not answer, whatever the ``reason``: go on to the next and name it.

        Empty where none is left: then the current one stays, and may be asked again.
        """
        self._breakers.failed(self.current.breaker, _with_phrase(reason))
        following = self._next()
        self._is_told = following is None
        if following is None:
            return ""
        self._current = following
        return f"{following.upstream}/{following.target.model}"

    def succeeded(self) -> None:
        """The current place answered."""
        self._breakers.succeeded(self.current.breaker)

    def failed(self) -> None:
        """The request failed here, in a way that ``fail_over`` was not told of: its response broke off, say."""
        if not self._is_told:
            self._breakers.failed(self.current.breaker)

    def _next(self) -> Route | None:
        return next((route for route in self._left if self._breakers.admits(route.breaker)), None)


class Router:
    """What a configuration says about models. ``clock`` gives seconds that never go back, ``chance`` 0 to 1.

    ``breakers`` outlive a change of the configuration where they are given.
    """

    def __init__(
        self,
        config: Config,
        rulebook: Catalogue,
        *,
        breakers: Breakers | None = None,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        day: Callable[[], str] = today,
    ) -> None:
        routing = config.routing
        self._config = config
        self._of_clients = config.of_clients
        self._rulebook = rulebook
        self._chance = chance
        self._day = day
        self._keyring = Keyring()
        self._routes: OrderedDict[tuple[str, str, str], Route] = OrderedDict()
        self._on = ""
        # Upstreams that refused our key: the status, and until when others are asked first.
        self._key_refused: dict[str, tuple[int, float]] = {}
        self._clock = clock
        self._key_files: dict[str, tuple[tuple[float, int, int] | None, ...]] = {}
        self.breakers = breakers or Breakers(clock)
        self.breakers.adjust(routing.breaker_failures, routing.breaker_cooldown)

    def choose(
        self,
        asked: str,
        grant: Grant,
        origins: Sequence[Origin] = (),
        end_user: str = "",
        front: str = "",
        own: Own | None = None,
    ) -> Choice:
        """The places for a model that is ``asked`` for at ``front``.

        ``origins``: who minted what the history carries, oldest first. ``own`` is the client's own credential, which
        goes to the place that it was bound to when its request began, and to no other.

        Raises ``NotFoundError`` for a name that there is not, or not for this key; ``CredentialError`` where no place
        has a key; ``Refused`` for a place that the client has to show a credential for; ``NetworkError`` with
        ``details["retry_after"]`` (seconds) where all are left alone for a while.
        """
        if not model_matches(asked, grant.models):
            raise _unknown(asked)
        routes = self._resolved(asked, self._candidates(asked, front, grant), _Asker(grant, own))
        routes = sorted(_affine(routes, origins, end_user), key=lambda route: self._rests_for_key(route))
        return Choice(routes, self.breakers)

    def note_answer(self, upstream: str, status: int) -> None:
        """An upstream answered a request with the gateway's own key."""
        if status in KEY_REFUSED:
            self._key_refused[upstream] = status, self._clock() + self._config.routing.breaker_cooldown
        elif status < 400:
            self._key_refused.pop(upstream, None)

    def refused_keys(self) -> dict[str, str]:
        """The upstreams that refused the gateway's key when they were asked last, with what they answered."""
        return {name: f"refused the gateway's key ({status})" for name, (status, _) in self._key_refused.items()}

    def _rests_for_key(self, route: Route) -> bool:
        """True if the key of ``route`` was refused a moment ago, so that others come first."""
        _, until = self._key_refused.get(route.upstream, (0, 0.0))
        return not route.payer and self._clock() < until

    def own_place(self, front: str) -> Route | None:
        """The place that takes the own credentials of clients that speak ``front``, without one; ``None`` for none.

        Where nothing tells what a client speaks (``""``) it is the one place of those whose clients do not tell:
        of two, the credential of one would go to the other.
        """
        fronts = (front,) if front else _UNMARKED
        routes = (self._route("", To(name, _ANY)) for name in self._of_clients)
        found = [route for route in routes if route.target.endpoint.dialect in fronts]
        return found[0] if found and (front or len(found) == 1) else None

    def names(self, grant: Grant, front: str = "") -> list[str]:
        """What ``grant`` may ask for by name at ``front``: aliases, and models of the catalogue."""
        usual = grant.upstream or self._config.routing.defaults.get(front, "")
        found = dict.fromkeys((*self._aliases(), *self._catalogue(usual)))
        return [name for name in found if self.may_ask(name, grant, front)]

    def may_ask(self, asked: str, grant: Grant, front: str) -> bool:
        """Whether the name leads anywhere."""
        if not model_matches(asked, grant.models):
            return False
        try:
            return any(self._is_open(to.upstream, grant, front) for _, to in self._candidates(asked, front, grant))
        except NotFoundError:
            return False

    def _is_open(self, name: str, grant: Grant, front: str) -> bool:
        """Whether requests of ``grant`` at ``front`` can go to that upstream."""
        if name not in self._of_clients:
            return not grant.upstream
        fronts = _UNMARKED if front in _UNMARKED else (front,)
        return grant.upstream in ("", name) and self._endpoint_of(name).dialect in fronts

    def _aliases(self) -> Iterator[str]:
        for name, alias in self._config.models.items():
            if naming.STAR not in name:
                yield name
                continue
            for to in alias.targets:
                models = self._models_of(to.upstream)
                yield from filter(None, (naming.asked_for(name, to, model) for model in models))

    def _catalogue(self, usual: str) -> Iterator[str]:
        allowed = self._config.routing.allow_catalogue
        yield from self._models_of(usual)
        for upstream in (*self._config.upstreams, *self._keyed()) if allowed else ():
            yield from (f"{upstream}/{model}" for model in self._models_of(upstream))

    def _keyed(self) -> Iterator[str]:
        """The endpoints that are no upstream here and whose key is in the environment or kept on this machine.

        A gateway that has nothing else lists those that need no key.
        """
        endpoints = [endpoint for endpoint in self._rulebook.endpoints() if endpoint.id not in self._config.upstreams]
        names = {name for endpoint in endpoints for name in endpoint.auth.env}
        try:
            there = keys.places(names).keys() & names
        except ThinkbackError:  # a key file that cannot be read is reported where a key is needed
            there = {name for name in names if os.environ.get(name)}
        keyed = [one.id for one in endpoints if one.base_url and there.intersection(one.auth.env)]
        keyless = (one.id for one in endpoints if one.base_url and one.auth.scheme == "none")
        yield from keyed if keyed or self._config.upstreams else keyless

    def _models_of(self, upstream: str) -> list[str]:
        """The models of an upstream that are known by name: from aliases, and from the catalogue."""
        if not upstream:
            return []
        targets = (to for alias in self._config.models.values() for to in alias.targets if to.upstream == upstream)
        used = (to.model for to in targets if naming.STAR not in to.model)
        return list(dict.fromkeys((*used, *self._rulebook.served(self._endpoint_of(upstream).id))))

    def _endpoint_of(self, upstream: str) -> Endpoint:
        """The endpoint that an upstream is; of one that has an address alone, what is known to be there."""
        return endpoint_of(self._config.upstreams.get(upstream, Upstream(endpoint=upstream)), self._rulebook)

    def _candidates(self, asked: str, front: str, grant: Grant) -> list[tuple[str, To]]:
        """(alias, target) in the order of preference."""
        meant = naming.meant(asked, self._config.models)
        if meant is not None:
            return list(self._of_alias(meant.alias, set(), meant.captured))
        return [("", self._unaliased(asked, grant.upstream or self._config.routing.defaults.get(front, "")))]

    def _unaliased(self, asked: str, usual: str) -> To:
        """Where a name leads that is no alias: what stands before its slash, else the ``usual`` upstream."""
        try:
            return self._in_catalogue(asked)
        except NotFoundError:
            if not usual or not asked.isprintable() or asked in (".", ".."):
                raise
            return To(usual, asked)

    def _in_catalogue(self, asked: str) -> To:
        upstream, slash, model = asked.partition("/")
        # it stands in addresses and headers: what would be a step of a path there is no name
        named = upstream and model.isprintable() and model not in ("", ".", "..")
        if not (self._config.routing.allow_catalogue and slash and named):
            raise _unknown(asked)
        if upstream not in self._config.upstreams:
            try:
                self._rulebook.endpoint(upstream)
            except NotFoundError:
                raise _unknown(asked) from None
        return To(upstream, model)

    def _of_alias(self, name: str, seen: set[str], captured: tuple[str, ...] = ()) -> Iterator[tuple[str, To]]:
        if name in seen or name not in self._config.models:
            return
        seen.add(name)
        alias = self._config.models[name]
        yield from ((name, naming.filled(to, captured)) for to in _shuffled(alias, self._chance))
        for following in alias.fallbacks:
            yield from self._of_alias(following, seen)

    def _resolved(self, asked: str, candidates: Sequence[tuple[str, To]], asker: _Asker) -> list[Route]:
        """Those that can be asked. Raises what is wrong with the first where none can."""
        routes: dict[tuple[str, str], Route] = {}
        first: ThinkbackError | None = None
        for alias, to in candidates:
            try:
                route = self._for(asker, self._route(alias, to), asked)
            except (CredentialError, NotFoundError, Refused) as error:
                first = first or error
                continue
            routes.setdefault(route.key, route)
        if not routes:
            raise first or _unknown(asked)
        return list(routes.values())

    def _for(self, asker: _Asker, route: Route, asked: str) -> Route:
        """``route`` as it is for who asks: a client's own credential is put on for this request alone."""
        grant, place = asker.grant, asker.own.place if asker.own is not None else None
        is_clients = route.upstream in self._of_clients
        if grant.upstream and not (is_clients and grant.upstream == route.upstream):
            raise _unknown(asked)  # every other one spends what is not theirs
        if not is_clients:
            return route
        if asker.own is None or place is None or place.target.endpoint.dialect != route.target.endpoint.dialect:
            raise no_credential(route.upstream)
        if _address(place) != _address(route):
            raise moved()
        account, known = (grant.account, True) if grant.account else _account(asker.own, route, grant.key)
        return msgspec.structs.replace(
            route,
            target=msgspec.structs.replace(route.target, account=account, account_known=known),
            authenticator=OwnKey(asker.own.headers(route.target.endpoint.auth)),
            passes_stored=True,
            payer=grant.key,
        )

    def _route(self, alias: str, to: To) -> Route:
        on = self._day()
        if on != self._on:
            self._routes.clear()
            self._on = on
        self._look_at_key_files(to.upstream)
        key = (alias, to.upstream, to.model)
        found = self._routes.get(key)
        if found is None:
            found = self._routes[key] = self._made(alias, to)
            if len(self._routes) > _KEPT:
                self._routes.popitem(last=False)
        elif found.authenticator.waits:  # whose account it is may be known once it has signed in
            found = msgspec.structs.replace(found, target=found.place.target(self._rulebook))
        return found

    def _look_at_key_files(self, name: str) -> None:
        """Forget what was made of an upstream whose files of secrets changed since."""
        upstream = self._config.upstreams.get(name)
        files = key_files(upstream) if upstream is not None else ()
        if not files:
            return
        found = tuple(map(_stamp_of, files))
        if self._key_files.setdefault(name, found) != found and None not in found:
            self._key_files[name] = found
            self._key_refused.pop(name, None)
            for key in [key for key in self._routes if key[1] == name]:
                del self._routes[key]

    def _made(self, alias: str, to: To) -> Route:
        rulebook = self._rulebook
        upstream = self._config.upstreams.get(to.upstream) or Upstream(endpoint=to.upstream)
        place = place_of(upstream, to.model)
        place = msgspec.structs.replace(place, keyring=self._keyring)
        return Route(
            upstream=to.upstream,
            place=place,
            target=place.target(rulebook),
            authenticator=authenticator_of(upstream, place, rulebook),
            settings=_settings(upstream, self._config.models[alias]) if alias else upstream.settings,
            streaming=place.headers(rulebook, streams=True),
            whole=place.headers(rulebook, streams=False),
            leaked_calls=upstream.leaked_calls,
            passes_stored=upstream.stored == "pass",
        )


def _address(route: Route) -> tuple[str, str, str | None]:
    """Where a request goes, and by which way."""
    return route.upstream, route.target.base_url, route.place.proxy


def _account(own: Own, route: Route, key: str) -> tuple[str, bool]:
    """Who pays for a request with ``own`` as far as it says so, else whoever has the ``key`` of the gateway."""
    endpoint, base_url = route.target.endpoint, route.target.base_url
    account, known = account_of(endpoint, base_url, own.headers(endpoint.auth), own.secret)
    return account or f"{_ANY}{key}", known


def _settings(upstream: Upstream, alias: Alias) -> Mapping[str, object]:
    """Those of an upstream with those of an alias over them."""
    return {**upstream.settings, **alias.settings} if upstream.settings else alias.settings


def place_of(upstream: Upstream, model: str) -> EndpointConfig:
    """The place that the configuration describes, its secrets read now. Raises ``CredentialError``."""
    return EndpointConfig(
        model=model,
        endpoint=upstream.endpoint,
        base_url=upstream.base_url,
        api_key=text_of(f"file:{upstream.key_file}", os.environ) if upstream.key_file else None,
        key_env=upstream.key_env,
        headers_given={
            name: text_of(value, os.environ) if REFERENCE.fullmatch(value) else value
            for name, value in upstream.headers.items()
        },
        proxy=upstream.proxy or None,
        account=_ANY if upstream.is_clients else upstream.account,
    )


def authenticator_of(upstream: Upstream, place: EndpointConfig, rulebook: Rulebook) -> Authenticator:
    """Who authenticates requests to ``place``: nobody yet where that is for its client. Raises ``CredentialError``."""
    return NO_CREDENTIALS if upstream.is_clients else place.authenticator(rulebook)


def without_key(config: Config, rulebook: Rulebook) -> dict[str, CredentialError]:
    """The upstreams of ``config`` that cannot be asked for want of a key, by name, with what is missing."""
    found: dict[str, CredentialError] = {}
    for name, upstream in config.upstreams.items():
        try:
            authenticator_of(upstream, place_of(upstream, ""), rulebook)
        except CredentialError as error:
            found[name] = error
        except ThinkbackError:  # what else is wrong with it is told where it is asked
            continue
    return found


def key_files(upstream: Upstream) -> tuple[str, ...]:
    """The files that the secrets of an upstream are read from."""
    named = (value[5:] for value in upstream.headers.values() if value.startswith("file:"))
    return tuple(filter(None, (upstream.key_file, *named)))


def _stamp_of(file: str) -> tuple[float, int, int] | None:
    """By what a file differs from an earlier one; ``None`` while there is none."""
    try:
        found = os.stat(os.path.expanduser(file))
    except OSError:
        return None
    return found.st_mtime, found.st_size, found.st_ino


def _shuffled(alias: Alias, chance: Callable[[], float]) -> list[To]:
    """The targets by lot, each drawn with its weight; those that weigh nothing come last, in their order."""
    left, drawn = [to for to in alias.targets if to.weight > 0], []
    while len(left) > 1:
        point = chance() * sum(to.weight for to in left)
        at = 0
        while at < len(left) - 1 and point >= left[at].weight:
            point -= left[at].weight
            at += 1
        drawn.append(left.pop(at))
    return [*drawn, *left, *(to for to in alias.targets if to.weight == 0)]


def _affine(routes: list[Route], origins: Sequence[Origin], end_user: str) -> list[Route]:
    """``routes`` with the one first that may be given back the newest of what the history carries."""
    for origin in reversed(origins) if len(routes) > 1 else ():
        for at, route in enumerate(routes):
            if guard.check(origin, route.target, end_user).carriers:
                return [route, *routes[:at], *routes[at + 1 :]]
    return routes


def _unknown(asked: str) -> NotFoundError:
    return NotFoundError(
        f"the model {asked!r} does not exist, or this key may not use it: names are aliases or ENDPOINT/MODEL",
        details={"model": asked},
        next_actions=("use a model that GET /v1/models lists, or for example deepseek/deepseek-v4-pro",),
    )


def _with_phrase(reason: str) -> str:
    """Reduce a ``reason`` to what clients may read, with the usual words of its status."""
    said = public_reason(reason)
    try:
        return f"{said}, {HTTPStatus(int(said.removeprefix('status '))).phrase}"
    except ValueError:
        return said


def _all_resting(routes: Sequence[Route], breakers: Breakers) -> NetworkError:
    seconds, first = min((breakers.rests_for(route.breaker), at) for at, route in enumerate(routes))
    reason = breakers.reason(routes[first].breaker) or "its response broke off"
    return NetworkError(
        "no upstream of this model responded recently: requests to them are paused "
        f"(the last failure: {reason}; the next try: in {seconds:.0f} s)",
        details={"phase": "network", "retry_after": seconds, "upstream": routes[first].name},
        next_actions=(f"ask again in {seconds:.0f} s",),
    )
