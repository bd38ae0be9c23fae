"""Where requests go, and with which headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec

from thinkback.drive.auth import NO_CREDENTIALS, Keyring, takes
from thinkback.drive.auth.account import account as account_of
from thinkback.drive.auth.keys import fits_header
from thinkback.drive.http import Timeouts
from thinkback.errors import CredentialError, NotFoundError, SettingError
from thinkback.model.rule import Endpoint
from thinkback.model.target import Target
from thinkback.rules.urls import server_of
from thinkback.session import config
from thinkback.turn.credentials import Authenticator

_WILD = re.compile(r"[*?[]")
# What belongs to one server and must not reach another by accident.
_HOST_BOUND: dict[str, Any] = {"api_key": None, "key_env": "", "headers_given": {}, "account": ""}


class Rulebook(Protocol):
    """What this package needs of the rules."""

    def endpoint(self, name: str) -> Endpoint: ...

    def endpoint_for_url(self, base_url: str) -> Endpoint: ...

    def target(
        self,
        endpoint: str,
        model: str,
        *,
        base_url: str = "",
        on: str,
        account: str = "",
        account_known: bool = False,
    ) -> Target: ...


class EndpointConfig(msgspec.Struct, frozen=True):
    """Where a session's requests go, and how.

    ``endpoint`` is a name of the catalogue, or empty where ``base_url`` alone says it. ``key_env`` names the variable
    that holds the key, where it is not one of the endpoint's. ``proxy`` and ``verify`` (a CA
    file, a context, or ``False``) override the environment; ``transport`` replaces our HTTP client altogether.
    ``keyring`` keeps the sign-ins that need more than a key.
    """

    model: str
    endpoint: str = ""
    base_url: str = ""
    api_key: str | None = None
    key_env: str = ""
    headers_given: Mapping[str, str] = {}
    proxy: str | None = None
    verify: Any = True
    timeouts: Timeouts = Timeouts()
    transport: Any = None
    account: str = ""
    keyring: Keyring = msgspec.field(default_factory=Keyring)

    def changed(self, rulebook: Rulebook, **options: Any) -> EndpointConfig:
        """This place with ``options`` changed, those that are ``None`` aside.

        Another endpoint forgets the base URL of the old one; another endpoint, scheme, host or port forgets key,
        headers and account. Raises ``NotFoundError``, and ``TypeError`` for an option that does not exist.
        """
        given = {key: value for key, value in options.items() if value is not None}
        if "headers" in given:
            given["headers_given"] = dict(given.pop("headers"))
        if given.get("key_env"):
            given = {"api_key": None, **given}
        if given.get("endpoint", self.endpoint) != self.endpoint:
            given = {**_HOST_BOUND, "base_url": "", **given}
        elif "base_url" in given:
            there = given["base_url"] or self._own(rulebook)
            given = given if same_server(there, self.address(rulebook)) else {**_HOST_BOUND, **given}
        place = msgspec.structs.replace(self, **given)
        place.resolved(rulebook)
        return place

    @property
    def is_complete(self) -> bool:
        """Whether it says an endpoint and a model."""
        return bool((self.endpoint or self.base_url) and self.model)

    def resolved(self, rulebook: Rulebook) -> Endpoint:
        """The endpoint's data. Raises ``NotFoundError`` when neither name nor URL says where."""
        if self.endpoint:
            return rulebook.endpoint(self.endpoint)
        if self.base_url:
            return rulebook.endpoint_for_url(self.base_url)
        raise NotFoundError(
            "no endpoint was given", next_actions=("give endpoint= or base_url=; `thinkback endpoints` lists them",)
        )

    def target(self, rulebook: Rulebook) -> Target:
        """Endpoint, model, rule and account of the next request."""
        endpoint = self.resolved(rulebook)
        if not (self.base_url or endpoint.base_url):
            raise NotFoundError(f"{endpoint.id} has no fixed address", next_actions=("give base_url=",))
        if not self.model:
            raise NotFoundError("no model was given", next_actions=("give model=",))
        target = rulebook.target(endpoint.id, self.model, base_url=self.base_url, on=config.today())
        if endpoint.auth.scheme == "query" and endpoint.auth.query in parse_qs(urlsplit(target.base_url).query):
            raise SettingError(
                f"base URL: it must not hold the key ({endpoint.auth.query})", next_actions=("give it as api_key=",)
            )
        account, known = (self.account, True) if self.account else self._account(endpoint, target.base_url)
        return msgspec.structs.replace(target, account=account, account_known=known)

    def _account(self, endpoint: Endpoint, base_url: str) -> tuple[str, bool]:
        """Who pays, as far as it is known before the next request is signed."""
        from thinkback.session.config import keys

        has_own = self._has_own_credentials(endpoint)
        key = None if has_own else keys.of_endpoint(endpoint, self.api_key, self.key_env)
        account, known = account_of(endpoint, base_url, self.headers_given, key)
        sign_in = None if account or key or has_own else self.keyring.sign_in(endpoint)
        return sign_in.account if sign_in is not None else (account, known)

    def endpoint_settings(self, rulebook: Rulebook) -> Mapping[str, Any]:
        """The endpoint's layer of the settings; empty where none is named yet."""
        return self.resolved(rulebook).settings if self.endpoint or self.base_url else {}

    def headers(self, rulebook: Rulebook, *, streams: bool) -> dict[str, str]:
        """Request headers without credentials of ours; those of the caller replace ours, whatever their case.

        Raises ``SettingError`` for a header that HTTP cannot carry.
        """
        endpoint = self.resolved(rulebook)
        given = {**endpoint.headers, **self.headers_given}
        _check(given)
        taken = {name.lower() for name in given}
        accept = "text/event-stream" if streams else "application/json"
        ours = {"Content-Type": "application/json", "Accept": accept, "User-Agent": "thinkback"}
        return {**{name: value for name, value in ours.items() if name.lower() not in taken}, **given}

    def authenticator(self, rulebook: Rulebook) -> Authenticator:
        """Who puts the credentials on requests; nobody where the caller's headers have them.

        Raises ``CredentialError``.
        """
        endpoint = self.resolved(rulebook)
        if self._has_own_credentials(endpoint):
            return NO_CREDENTIALS
        from thinkback.session.config import keys

        key = keys.of_endpoint(endpoint, self.api_key, self.key_env)
        if key is None and self.key_env:
            raise keys.missing(self.key_env)
        return self.keyring.authenticator(endpoint, key)

    def key_missing(self, rulebook: Rulebook) -> str:
        """Why requests cannot be authenticated, where no key is found; else nothing."""
        try:
            self.authenticator(rulebook)
        except CredentialError as error:
            return error.message
        return ""

    def _has_own_credentials(self, endpoint: Endpoint) -> bool:
        """Whether the caller's headers, or those of the endpoint's data, hold a key or token."""
        return any(takes(endpoint, name.lower()) for name in (*endpoint.headers, *self.headers_given))

    def address(self, rulebook: Rulebook) -> str:
        """The base URL; empty where none is said."""
        return self.base_url or self._own(rulebook)

    def _own(self, rulebook: Rulebook) -> str:
        return rulebook.endpoint(self.endpoint).base_url if self.endpoint else ""

    def __repr__(self) -> str:
        return f"<EndpointConfig {self.endpoint or self.base_url} {self.model}>"


def same_server(one: str, other: str) -> bool:
    """Whether a key for the base URL ``one`` may go to ``other``: scheme, host and port are the same."""
    return server_of(one) == server_of(other) != "" or one == other


def is_home(url: str, endpoint: Endpoint, *own: str) -> bool:
    """Whether a key for ``endpoint`` may go to ``url``, which others wrote down: it is an address of the endpoint's own
    data, or one of the person's ``own``. A host that is only matched by a pattern may be anybody's.
    """
    scheme = endpoint.base_url.partition("://")[0] or "https"
    named = (pattern.partition("/")[0] for pattern in endpoint.hosts)
    whole = (f"{scheme}://{host}" for host in named if not _WILD.search(host))
    server = server_of(url)
    return server != "" and server in map(server_of, (endpoint.base_url, *whole, *own))


def _check(headers: Mapping[str, str]) -> None:
    """Refuse what HTTP would refuse, without repeating the value: it may be a key."""
    for name, value in headers.items():
        if not (name and name.isascii() and name.isprintable() and " " not in name and ":" not in name):
            raise SettingError(f"{name!r} cannot be the name of a header", details={"header": name})
        if not fits_header(value):
            raise SettingError(
                f"the value of the header {name} contains characters that HTTP cannot carry", details={"header": name}
            )
