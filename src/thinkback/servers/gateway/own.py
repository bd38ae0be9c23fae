"""A client's own credential, as its request shows it for a provider: what goes to that provider, and in which headers.

Promises: it is kept nowhere but in its request, and no ``repr`` shows it. Must not: send it, or say whose it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, SupportsBytes

from thinkback.drive.auth.keys import expires
from thinkback.model.rule import Auth
from thinkback.proxy.events import Route
from thinkback.proxy.problems import Refused
from thinkback.servers.gateway.grant import KEY_HEADER, PREFIX
from thinkback.turn.credentials import SHOWN, Credentials

LONGEST = 16 * 1024
_SHORTEST_SECRET = 6


class Own(NamedTuple):
    """``shown`` are the headers with the credential, ``beside`` all that came with them, names in lower case.

    ``place`` is where it may go, found when its request begins: a configuration that is read again while the rest of
    the request arrives changes nothing of that. ``None``: nowhere.
    """

    shown: Mapping[str, str]
    beside: Mapping[str, str]
    place: Route | None = None

    def __repr__(self) -> str:
        return f"<Own: {', '.join(self.shown)}>"

    @property
    def secret(self) -> str:
        """The credential itself, which is one in whichever headers it stands."""
        return next(iter(self.shown.values())).rpartition(" ")[2]

    @property
    def expires(self) -> bool:
        """Whether it is a token that is replaced by others, so that it does not say whose it is."""
        return self.place is not None and expires(self.place.target.endpoint, self.secret)

    def headers(self, auth: Auth) -> dict[str, str]:
        """What a request to an endpoint with ``auth`` carries of it."""
        along = {name.lower() for name in auth.along}
        return {**{name: self.beside[name] for name in sorted(along) if self.beside.get(name)}, **self.shown}


class OwnKey:
    """Puts a client's credential on the requests of one route. ``headers`` have it."""

    waits = False

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    def prepare(self) -> None:
        """It is there."""

    def __call__(self, url: str, headers: Mapping[str, str], body: SupportsBytes) -> Credentials:
        values = {self._headers[name].rpartition(" ")[2] for name in SHOWN if name in self._headers}
        return Credentials(self._headers, "", frozenset(each for each in values if len(each) >= _SHORTEST_SECRET))

    def __repr__(self) -> str:
        return "<OwnKey>"


def own_of(headers: Mapping[str, str], query: Mapping[str, Sequence[str]]) -> Own | None:
    """What a request shows that is no key of the gateway's; ``None`` for nothing. Raises ``Refused`` for two of them.

    Header names are in lower case.
    """
    shown = {name: headers[name].strip() for name in SHOWN if headers.get(name, "").strip()}
    if query.get("key", [""])[0]:
        shown.setdefault("x-goog-api-key", query["key"][0].strip())
    theirs: dict[str, str] = {}
    for name, value in shown.items():
        secret = value
        if name == "authorization":
            scheme, _, secret = value.partition(" ")
            secret = secret.strip()
            if scheme.lower() != "bearer":
                raise Refused(401, "not_bearer", "the Authorization header has no bearer token: send `Bearer ...`")
        if secret and not any(word.startswith(PREFIX) for word in secret.split()):
            theirs[name] = value
            if len(value) > LONGEST or not (value.isascii() and value.isprintable()):
                raise Refused(401, "malformed_credential", f"the credential in {name} cannot be sent to a provider")
    if len({value.rpartition(" ")[2] for value in theirs.values()}) > 1:
        raise Refused(400, "two_credentials", f"there are two credentials, in {' and in '.join(theirs)}: send one")
    return Own(theirs, headers) if theirs else None


def nobody(*, keys_alone: bool = False) -> Refused:
    """Neither a key, nor a credential by which its provider names somebody; ``keys_alone``: the latter is no use."""
    unless = "" if keys_alone else ", unless the provider's responses name an organisation"
    return Refused(
        401,
        "missing_key",
        f"who asks is not known: send a key of this gateway in the header {KEY_HEADER}, beside your own credential for "
        f"the provider{unless}",
    )


def not_listed(organisation: str) -> Refused:
    """An organisation that the configuration does not let in."""
    return Refused(
        403,
        "organisation_not_listed",
        f"the organisation {organisation} of your credential is not one that this gateway serves: ask its operator, or "
        f"send a key of this gateway in the header {KEY_HEADER}",
        details={"organisation": organisation},
    )


def moved() -> Refused:
    """The configuration was read again meanwhile, and the place that the credential was for is another one."""
    return Refused(503, "reloaded", "the gateway's configuration changed meanwhile; retry", retry_after=1)


def no_credential(upstream: str) -> Refused:
    """A request to a place that takes clients' own credentials, without one for it."""
    return Refused(
        401,
        "missing_credential",
        f"{upstream} takes your own credential for the provider, in the provider's own dialect: send it as the "
        "provider's clients do",
    )
