"""``session.profiles``: what a session is set to, under a name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from thinkback.errors import SettingError
from thinkback.session.configuration import checked
from thinkback.session.profiles import files, rotation
from thinkback.session.profiles.files import SETTING
from thinkback.settings import find
from thinkback.settings.profiles import Profile

if TYPE_CHECKING:
    from thinkback.session.conversation import Conversation


class Profiles:
    """``session.profiles``: save what a session is set to under a name, and take such a name on."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def save(self, name: str) -> Path:
        """Write endpoint, model, and every setting that this session or its profiles set, into the profile ``name``.

        Of a file that is there already, the comments stay. Keys are not saved, only the name of one. Raises
        ``SettingError`` for a name that cannot be one, ``RuleFileError`` for a file that cannot be read.
        """
        return files.write(name, saved(self._conversation))

    def save_rotating(self, name: str, kind: Literal["failover", "round-robin"], targets: Sequence[str]) -> Path:
        """Write the profile ``name``, whose requests go to the profiles ``targets`` in turn, or to the next where one
        fails.

        Raises as ``save``, and ``NotFoundError`` or ``SettingError`` for a profile that cannot be a target.
        """
        profile = Profile(kind, targets=tuple(targets))
        rotation.targets(profile)
        return files.write(name, profile)

    def load(self, *names: str) -> None:
        """Go by these profiles from the next request on, the later one first. Raises what is wrong, changing nothing:
        ``NotFoundError``, ``RuleFileError``, ``SettingError``.
        """
        if not names:
            raise SettingError("no profile is named", next_actions=(f"to follow none, unset {SETTING}",))
        conversation = self._conversation
        conversation.read_layer()
        place = checked(conversation.store.rulebook, conversation.followed.place, names)
        conversation.write_layer(conversation.layers.set("session", SETTING, ",".join(names)))
        conversation.followed.begin(place)

    def list(self) -> list[str]:
        """The names of the profiles there are."""
        return files.listed()

    def delete(self, name: str) -> None:
        """Delete the profile ``name``. Raises ``NotFoundError``, and ``SettingError`` for the default."""
        files.delete(name)

    def default(self, *names: str) -> Path:
        """Go by these profiles wherever a session has none of its own; without a name, by none.

        It is written into the user's settings file. Raises ``SettingError`` where the program has replaced that file.
        """
        if self._conversation.store.has_own_settings:
            raise SettingError(
                "the default cannot be set: this program does not read the settings file",
                next_actions=("give session.profile in the settings of thinkback.open",),
            )
        return files.make_default(names)


def saved(conversation: Conversation) -> Profile:
    """What it is set to, as a profile: place or targets, and every setting that it or its profiles set."""
    configuration = conversation.current()
    layers, place, rotating = configuration.layers, configuration.place, configuration.rotating
    own = {e.key: e.value for e in layers.entries if e.layer == "session" and "profile" not in find(e.key).refused_in}
    if rotating is not None:
        return msgspec.structs.replace(rotating.profile, settings={**rotating.profile.settings, **own})
    if place.is_complete:
        place.target(configuration.rules)  # an address with a key in it is refused
    theirs = {e.key: e.value for e in layers.entries if e.layer == "profile"}
    return Profile("model", place.endpoint, place.model, place.base_url, place.key_env, settings={**theirs, **own})
