"""What a session makes of the profiles that ``session.profile`` names: its settings, and where its requests go.

Profiles are read at every request, so that an edited file counts at once. Where they say another place than before,
the session goes there; between two such changes ``session.use`` has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from thinkback.errors import ContextRefused, CredentialError, ReplayRefused, SettingError, UnsupportedContent
from thinkback.session.place import Place, Rulebook
from thinkback.session.planning import plan_of
from thinkback.session.profiles.files import SETTING, loaded
from thinkback.session.profiles.moving import Spot, filled, moved, spot_of
from thinkback.session.profiles.rotation import Rotation, targets
from thinkback.settings import Value, find
from thinkback.settings.profiles import Profile, names_in
from thinkback.settings.registry import DEFAULT

if TYPE_CHECKING:
    from thinkback.session.requests import Options
    from thinkback.session.session import Session
    from thinkback.turn.plan import Plan


class Followed:
    """Where a session's requests go, and what its profiles said of that last. Knows no session.

    ``given`` is the place without the targets of a profile.
    """

    def __init__(self, place: Place) -> None:
        self.place = self.given = place
        self.spot = Spot()
        self.is_new = True
        self.rotation = Rotation()
        self.rotating: Profile | None = None

    def use(self, place: Place) -> None:
        """Go to ``place``."""
        self.place = self.given = place


def follow(session: Session) -> Mapping[str, Value]:
    """The settings of the session's profiles, read now; the session goes where they say.

    Raises ``NotFoundError``, ``RuleFileError`` and ``SettingError`` for a profile that is not there or cannot be meant.
    """
    followed, book = session._followed, session._store.rulebook
    names = _names(session)
    if not names:
        followed.spot, followed.is_new, followed.rotating = Spot(), False, None
        return {}
    profile = loaded(names)
    settings = profile.settings
    followed.rotating = profile if profile.targets else None
    if profile.targets:
        profile = targets(profile)[followed.rotation.current(session, profile)]
        settings = {**profile.settings, **settings}
    spot = spot_of(profile)
    if spot != followed.spot:
        if followed.rotating is not None:
            followed.place = moved(followed.given, book, spot)
        else:
            followed.use((filled if followed.is_new else moved)(followed.place, book, spot))
    followed.spot, followed.is_new = spot, False
    return settings


def load(session: Session, names: Sequence[str]) -> None:
    """Follow the profiles ``names``; where something is wrong with them, nothing is changed."""
    if not names:
        raise SettingError("no profile is named", next_actions=(f"to follow none, unset {SETTING}",))
    session._read_layer()
    followed = session._followed
    place = checked(session._store.rulebook, followed.place, names)
    session._write_layer(session._layers.set("session", SETTING, ",".join(names)))
    followed.use(place)
    followed.spot, followed.is_new, followed.rotation = Spot(), False, Rotation(followed.rotation.clock)


def checked(book: Rulebook, place: Place, names: Sequence[str], *, fill: bool = False) -> Place:
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


def saved(session: Session) -> Profile:
    """What ``session`` is set to, as a profile: place or targets, and every setting that it or its profiles set."""
    layers, place = session.layers, session._place
    rotating = session._followed.rotating
    own = {e.key: e.value for e in layers.entries if e.layer == "session" and "profile" not in find(e.key).refused_in}
    if rotating is not None:
        return msgspec.structs.replace(rotating, settings={**rotating.settings, **own})
    if place.is_complete:
        place.target(session._store.rulebook)  # an address with a key in it is refused
    theirs = {e.key: e.value for e in layers.entries if e.layer == "profile"}
    return Profile("model", place.endpoint, place.model, place.base_url, place.key_env, settings={**theirs, **own})


def begin(session: Session, *, is_new: bool) -> None:
    """A turn begins, with a message of its own if it ``is_new``."""
    session._place  # noqa: B018
    followed = session._followed
    if followed.rotating is not None:
        followed.rotation.begin(session, followed.rotating, is_new=is_new)


def planned(session: Session, options: Options) -> Plan:
    """The next request; where a target that took over cannot be asked at all, that of the next one."""
    session._place  # noqa: B018
    followed = session._followed
    if followed.rotating is not None and followed.rotation.serving not in followed.rotating.targets:
        followed.rotation.begin(session, followed.rotating, is_new=False)  # the profile came in the middle of the turn
    while True:
        try:
            plan = plan_of(session, options, with_key=True)
            plan.leaked_calls = "ask"
            return plan
        except (ContextRefused, CredentialError, ReplayRefused, SettingError, UnsupportedContent) as error:
            if not followed.rotation.tried or not fail_over(session, error.message):
                raise


def fail_over(session: Session, reason: str) -> str:
    """The target that takes over from the one that failed for ``reason``; empty where there is none."""
    followed = session._followed
    return followed.rotation.fail_over(session, followed.rotating, reason) if followed.rotating is not None else ""


def told(session: Session, error: Exception) -> Exception:
    """``error``, with what became of the other targets."""
    followed = session._followed
    return followed.rotation.told(session, followed.rotating, error) if followed.rotating is not None else error


def _names(session: Session) -> tuple[str, ...]:
    """The names of the profiles that are followed: the session's own, else the user's."""
    own = next((entry.value for entry in session._layers.entries if entry.key == SETTING), None)
    value = session._store.user_settings().get(SETTING, DEFAULT) if own is None else own
    return () if value == DEFAULT else names_in(str(value))
