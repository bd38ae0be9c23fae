"""``session.profiles``: what a session is set to, under a name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from thinkback.errors import SettingError
from thinkback.session.profiles import files, following

if TYPE_CHECKING:
    from thinkback.session.session import Session


class Profiles:
    """``session.profiles``: save what a session is set to under a name, and take such a name on."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def save(self, name: str) -> Path:
        """Write endpoint, model, and every setting that this session or its profiles set, into the profile ``name``.

        Of a file that is there already, the comments stay. Keys are not saved, only the name of one. Raises
        ``SettingError`` for a name that cannot be one, ``RuleFileError`` for a file that cannot be read.
        """
        return files.write(name, following.saved(self._session))

    def load(self, *names: str) -> None:
        """Go by these profiles from the next request on, the later one first. Raises what is wrong, changing nothing:
        ``NotFoundError``, ``RuleFileError``, ``SettingError``.
        """
        following.load(self._session, names)

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
        if self._session._store.has_own_settings:
            raise SettingError(
                "the default cannot be set: this program does not read the settings file",
                next_actions=("give session.profile in the settings of thinkback.open",),
            )
        return files.make_default(names)
