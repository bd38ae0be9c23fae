"""What one request goes by: settings, app, profiles and place, taken once as a frozen value.

``read`` looks at the files, ``resolve`` makes the value of them. Promises: a file is opened again only where its stat
changed; what works on a ``Configuration`` reads no file. Where profiles say another place than at the last look, the
conversation goes there; between two such changes ``session.use`` has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import msgspec

from thinkback.drive.limits import ask_limit, with_asked_limit
from thinkback.errors import NotFoundError, RuleFileError, ThinkbackError
from thinkback.model.target import Settings, Target
from thinkback.session import apps
from thinkback.session.destination import Destination
from thinkback.session.endpoint_config import EndpointConfig, Rulebook
from thinkback.session.profiles.files import SETTING, loaded
from thinkback.session.profiles.moving import filled, moved, spot_of
from thinkback.session.profiles.rotation import Rotating, Rotation, targets
from thinkback.settings import Layers, Value
from thinkback.settings.apps import App
from thinkback.settings.profiles import Profile, names_in
from thinkback.settings.registry import DEFAULT
from thinkback.turn.credentials import Authenticator


class Sources(msgspec.Struct, frozen=True):
    """What the files say: the user's settings, the session's app (or what is wrong with it), its profiles as one.

    ``targets`` are the targets of a failover or round-robin profile, by name.
    """

    user: Mapping[str, object]
    app: App | NotFoundError | RuleFileError | None = None
    profile: Profile | None = None
    targets: Mapping[str, Profile] = {}


class Configuration(msgspec.Struct, frozen=True, dict=True):
    """The snapshot. ``layers`` are those below a call's, ``place`` is where the next request goes."""

    layers: Layers
    place: EndpointConfig
    rules: Rulebook
    found_app: App | NotFoundError | RuleFileError | None = None
    rotating: Rotating | None = None

    @property
    def app(self) -> App | None:
        """The app of the session. Raises ``NotFoundError``, ``RuleFileError`` where its file cannot be used."""
        if isinstance(self.found_app, NotFoundError | RuleFileError):
            raise self.found_app
        return self.found_app

    def settings(self, call: Mapping[str, object] | None = None) -> Settings:
        """The effective settings, with those of a ``call``."""
        layers = self.layers.replace("call", call) if call else self.layers
        return layers.effective(self.place.endpoint_settings(self.rules))

    @cached_property
    def target(self) -> Target:
        """Endpoint, model, rule and account of the next request. Raises ``NotFoundError``, ``SettingError``."""
        return with_asked_limit(self.place.target(self.rules))

    def ask_limit(self) -> None:
        """Ask the server how many tokens a request may have, once a process and model, where it is one that tells.

        Whatever is wrong with the place is for the request to say.
        """
        with suppress(ThinkbackError):
            target = self.place.target(self.rules)
            if target.endpoint.limit_queries and self.place.transport is None and not self.settings().context_limit:
                ask_limit(target, self.authenticator(), self.place.proxy, self.place.verify)

    def authenticator(self) -> Authenticator:
        """Who puts the credentials on. Raises ``CredentialError``."""
        return self.place.authenticator(self.rules)

    def headers(self, *, streams: bool) -> dict[str, str]:
        """Request headers without credentials of ours. Raises ``SettingError``."""
        return self.place.headers(self.rules, streams=streams)


class Followed:
    """Where a session's requests go, and what its profiles said of that last.

    ``given`` is the place without the targets of a profile; ``rotating`` are those of the last look. ``is_open``: what
    nobody said is still to be looked up.
    """

    def __init__(self, place: EndpointConfig) -> None:
        self.place = self.given = place
        self.is_open = not place.is_complete
        self.spot = Destination()
        self.is_new = True
        self.rotation = Rotation()
        self.rotating: Rotating | None = None
        self._stacked: tuple[Layers, Mapping[str, object], Mapping[str, Value], object, Layers] | None = None

    def use(self, place: EndpointConfig) -> None:
        """Go to ``place``."""
        self.place, self.given, self.is_open = place, place, False

    def begin(self, place: EndpointConfig) -> None:
        """Go to ``place``, which profiles that are followed from now on say."""
        self.use(place)
        self.spot, self.is_new, self.rotation = Destination(), False, Rotation(self.rotation.clock)

    def follow(self, spot: Destination, rotating: Rotating | None, rules: Rulebook) -> None:
        """Go where the profiles say, if that is another place than at the last look."""
        if spot != self.spot:
            if rotating is not None:
                self.place = moved(self.given, rules, spot)
            else:
                self.use((filled if self.is_new else moved)(self.place, rules, spot))
        self.spot, self.is_new, self.rotating = spot, False, rotating

    def stack(
        self,
        own: Layers,
        user: Mapping[str, object],
        said: Mapping[str, Value],
        app: App | NotFoundError | RuleFileError | None,
    ) -> Layers:
        """All layers below a call's, made again only where one is another than at the last look."""
        known = self._stacked
        if known is None or known[0] is not own or known[1:4] != (user, said, app):
            layers = apps.stacked(own.replace("user", user).replace("profile", said), app)
            known = self._stacked = (own, user, said, app, layers)
        return known[4]

    def leave(self) -> None:
        """No profile is followed."""
        self.spot, self.is_new, self.rotating = Destination(), False, None


def read(layers: Layers, user: Mapping[str, object]) -> Sources:
    """What the files of app and profiles say that ``layers``, those of the session, and ``user`` name.

    Raises ``NotFoundError``, ``RuleFileError`` and ``SettingError`` for a profile that is not there or cannot be meant.
    """
    app: App | NotFoundError | RuleFileError | None
    try:
        app = apps.app_of(layers)
    except (NotFoundError, RuleFileError) as error:
        app = error
    own = next((entry.value for entry in layers.entries if entry.key == SETTING), None)
    value = user.get(SETTING, DEFAULT) if own is None else own
    names = () if value == DEFAULT else names_in(str(value))
    if not names:
        return Sources(user, app)
    profile = loaded(names)
    return Sources(user, app, profile, targets(profile))


def rotating_of(sources: Sources, given: EndpointConfig, rules: Rulebook) -> Rotating | None:
    """The targets of the profile, laid on ``given``, where it is one that has some."""
    profile = sources.profile
    return Rotating(profile, sources.targets, given, rules) if profile is not None and profile.targets else None


def resolve(
    sources: Sources, own: Layers, followed: Followed, rules: Rulebook, rotating: Rotating | None, serving: str
) -> Configuration:
    """The snapshot of ``sources`` with a session's ``own`` layers; ``followed`` goes where the profiles lead, which is
    the target ``serving`` where they are ``rotating``.
    """
    said: Mapping[str, Value] = {}
    profile = sources.profile
    if profile is None:
        followed.leave()
    else:
        said = profile.settings
        if rotating is not None:
            profile = sources.targets[serving]
            said = {**profile.settings, **said}
        followed.follow(spot_of(profile), rotating, rules)
    stacked = followed.stack(own, sources.user, said, sources.app)
    place = apps.fitted(sources.app, followed.place, rules)
    return Configuration(stacked, place, rules, sources.app, followed.rotating)


def checked(book: Rulebook, place: EndpointConfig, names: Sequence[str], *, fill: bool = False) -> EndpointConfig:
    """``place`` as the profiles ``names`` would have it; of several targets the first that has a key. Raises what is
    wrong with any.

    With ``fill`` they say only what ``place`` leaves open.
    """
    profile = loaded(names)
    if profile.targets:
        places = [moved(place, book, spot_of(target)) for target in targets(profile).values()]
    else:
        places = [(filled if fill else moved)(place, book, spot_of(profile))]
    for there in places:
        if there.is_complete:
            there.target(book)
    usable = (there for there in places if there.is_complete and not there.key_missing(book))
    return next(usable, places[0]) if profile.targets else places[0]
