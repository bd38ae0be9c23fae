"""What a session makes of the profiles that ``session.profile`` names: its settings, and where its requests go.

Profiles are read at every request, so that an edited file counts at once. Where they say another place than before,
the session goes there; between two such changes ``session.use`` has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import msgspec

from thinkback.errors import SettingError
from thinkback.session.place import Place, Rulebook
from thinkback.session.profile_files import SETTING, loaded
from thinkback.settings import KEYS, Value
from thinkback.settings.profiles import Profile, names_in

if TYPE_CHECKING:
    from thinkback.session.session import Session


class Spot(NamedTuple):
    """What a profile says of a place; what is empty it does not say."""

    endpoint: str = ""
    model: str = ""
    base_url: str = ""
    key_env: str = ""


class Followed:
    """Where a session's requests go, and what its profiles said of that last. Knows no session."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.spot = Spot()
        self.is_new = True


def place_of(session: Session) -> Place:
    """Where the next request goes. Raises as ``follow``."""
    follow(session)
    return session._followed.place


def follow(session: Session) -> Mapping[str, Value]:
    """The settings of the session's profiles, read now; the session goes where they say.

    Raises ``NotFoundError``, ``RuleFileError`` and ``SettingError`` for a profile that is not there or cannot be meant.
    """
    followed = session._followed
    names = named(session)
    if not names:
        followed.spot, followed.is_new = Spot(), False
        return {}
    profile = loaded(names)
    spot = spot_of(profile)
    if spot != followed.spot:
        book = session._store.rulebook
        go = filled if followed.is_new else moved
        followed.place = go(followed.place, book, spot)
    followed.spot, followed.is_new = spot, False
    return profile.settings


def load(session: Session, names: Sequence[str]) -> None:
    """Follow the profiles ``names``; where something is wrong with them, nothing is changed."""
    if not names:
        raise SettingError("no profile is named", next_actions=(f"to follow none, unset {SETTING}",))
    session._read_layer()
    profile, place = checked(session._store.rulebook, session._followed.place, names)
    session._write_layer(session._layers.set("session", SETTING, ",".join(names)))
    followed = session._followed
    followed.place, followed.spot, followed.is_new = place, spot_of(profile), False


def checked(book: Rulebook, place: Place, names: Sequence[str], *, fill: bool = False) -> tuple[Profile, Place]:
    """The profiles ``names`` as one, and ``place`` as it is with them. Raises what is wrong with either."""
    profile = loaded(names)
    there = (filled if fill else moved)(place, book, spot_of(profile))
    if there.is_complete:
        there.target(book)
    return profile, there


def saved(session: Session) -> Profile:
    """What ``session`` is set to, as a profile: place, and every setting that it or its profiles set."""
    layers, place = session.layers, session._place
    kept = {e.key: e.value for e in layers.entries if e.layer in ("profile", "session")}
    settings = {key: value for key, value in kept.items() if "profile" not in KEYS[key].refused_in}
    if place.is_complete:
        place.target(session._store.rulebook)  # an address with a key in it is refused
    return Profile("model", place.endpoint, place.model, place.base_url, place.key_env, settings=settings)


def named(session: Session) -> tuple[str, ...]:
    """The names of the profiles that are followed."""
    layers = session._layers.replace("user", session._store.user_settings())
    return names_in(str(layers.origin(SETTING).value or ""))


def spot_of(profile: Profile) -> Spot:
    """What ``profile`` says of a place."""
    return Spot(profile.endpoint, profile.model, profile.base_url, profile.key_env)


def moved(place: Place, book: Rulebook, spot: Spot) -> Place:
    """``place`` with what ``spot`` says. Another host gets no key of the old one. Raises ``NotFoundError``."""
    given: dict[str, str] = {}
    if spot.endpoint or spot.base_url:
        given = {"endpoint": spot.endpoint, "base_url": spot.base_url, "key_env": spot.key_env}
    if spot.key_env:
        place = msgspec.structs.replace(place, api_key=None)
        given["key_env"] = spot.key_env
    if spot.model:
        given["model"] = spot.model
    return place.changed(book, **given) if given else place


def filled(place: Place, book: Rulebook, spot: Spot) -> Place:
    """What ``place`` leaves open, as ``spot`` says it; where it names another endpoint or address, nothing."""
    if not (place.endpoint or place.base_url):
        there = moved(place, book, spot)
        return msgspec.structs.replace(
            there,
            model=place.model or there.model,
            api_key=place.api_key,
            headers_given=place.headers_given,
            account=place.account,
        )
    theirs = Place(spot.model, spot.endpoint or place.endpoint, spot.base_url)
    is_same_host = _host(place.address(book)) == _host(theirs.address(book))
    if place.endpoint != theirs.endpoint or not (place.endpoint or is_same_host):
        return place
    key_env = spot.key_env if is_same_host and place.api_key is None else ""
    return msgspec.structs.replace(place, model=place.model or spot.model, key_env=place.key_env or key_env)


def _host(url: str) -> str:
    return urlsplit(url).netloc.lower()
