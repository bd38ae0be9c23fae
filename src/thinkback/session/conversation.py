"""The state behind a session: its log and line, the history, what was set, and where its requests go.

The fields are public: helpers take the conversation, or the part of it that they use. Must not: send or plan anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from thinkback.drive.clock import now
from thinkback.drive.hooks import Hooks
from thinkback.drive.leases import Holder
from thinkback.drive.line import Line
from thinkback.drive.tools import PythonTool
from thinkback.errors import HeadMovedError, NotFoundError, ThinkbackError
from thinkback.log.protocol import SessionInfo
from thinkback.log.seal import seal
from thinkback.model.commits import Commit, Draft, Step
from thinkback.session import apps, config
from thinkback.session.config import keys
from thinkback.session.configuration import Configuration, Followed, Sources, read, resolve, rotating_of
from thinkback.session.endpoint_config import EndpointConfig
from thinkback.session.ids import new_id
from thinkback.session.profiles.files import SETTING
from thinkback.session.requests import Options
from thinkback.settings import Layers
from thinkback.turn.orphans import NEVER_FINISHED, closing_drafts
from thinkback.turn.plan import History

if TYPE_CHECKING:
    from thinkback.session.store import SessionStore
    from thinkback.session.stream import LastTurn
    from thinkback.session.usage import Spent
    from thinkback.session.wire import Planned


class Conversation:
    """One conversation in ``store``. ``layers`` are the session's own settings, ``call`` the options of its last turn.

    ``functions`` are those that its tools were given with last; ``warned`` is what a warning was already given of.
    """

    def __init__(self, store: SessionStore, info: SessionInfo, place: EndpointConfig) -> None:
        from thinkback.session.stream import LastTurn

        self.store = store
        self.info = info
        hooks = Hooks()
        self.holder = Holder(store.log, info.id, hooks, store.lease_period)
        self.line = Line(store.log, info.id, info.branch, hooks, self.holder)
        self.layers = Layers().replace("session", info.settings)
        self.followed = Followed(place)
        self.functions: dict[str, PythonTool] = {}
        self.call = Options()
        self.warned: frozenset[str] = frozenset()
        self.spent: Spent | None = None
        self.planned: Planned | None = None
        self.last_turn: LastTurn = LastTurn()

    @cached_property
    def history(self) -> History:
        """The line, read when it is first needed: a fork, or a session that is only switched, costs no history."""
        epoch = self.store.log.epoch()  # before: what is erased in between makes another number of it
        return History(self.line.read(), epoch)

    def sources(self) -> Sources:
        """What the files say that bear on the next request. Reads them: those whose stat changed since.

        Raises ``NotFoundError``, ``RuleFileError`` and ``SettingError`` for what cannot be used.
        """
        return read(self.layers, self.store.user_settings())

    def all_sources(self) -> Sources:
        """The same; files that are read where they are needed, of keys and prices, are in memory then as well."""
        with suppress(OSError, UnicodeError, ThinkbackError):  # their faults are for whoever needs them
            keys.read_file()
            if self.store.usage_log is not None:
                config.price_file()
        if self.followed.is_open:
            _ = self.history  # where the last request went
        return self.sources()

    def configure(self, sources: Sources | None = None) -> Configuration:
        """What the next request goes by, from ``sources`` or from the files now.

        This moves the conversation where its profiles lead, if they say another place than before.
        """
        sources = self.sources() if sources is None else sources
        followed, rules = self.followed, self.store.rulebook
        if followed.is_open:
            followed.use(self._completed(followed.given, sources))
        rotating, serving = rotating_of(sources, followed.given, rules), ""
        if rotating is not None:
            serving = followed.rotation.current(rotating, self.history.commits, self.last_turn.driver)
        return resolve(sources, self.layers, followed, rules, rotating, serving)

    def _completed(self, place: EndpointConfig, sources: Sources) -> EndpointConfig:
        """``place`` with what the session's profiles, its last request or the environment say, where it leaves that
        open.
        """
        from thinkback.session import destination

        if sources.profile is not None and sources.profile.targets:
            return place  # they say where
        given = destination.Destination(place.endpoint, place.model, place.base_url, place.key_env)
        if not (given.endpoint or given.base_url):
            said = destination.of_environment()
            given = said._replace(model=given.model or said.model, key_env=given.key_env)
        own = self.info.settings.get(SETTING, "")
        found = destination.recalled(self.store, self.info, lambda: self.history.commits, given, own)
        return msgspec.structs.replace(place, **found._asdict())

    def current(self) -> Configuration:
        """The same from the files now, with the settings that other processes gave the session."""
        self.read_layer()
        return self.configure()

    def read_layer(self) -> SessionInfo | None:
        """The session's settings as they are in the store: another process may have set them.

        Returns what the store has under the session's name.
        """
        info = self.store.log.find_session(self.info.name)
        if info is not None and info.settings != self.info.settings:
            self.info = info
            self.layers = self.layers.replace("session", info.settings)
        return info

    def write_layer(self, layers: Layers) -> None:
        """Store the session's settings."""
        self.store.log.write_settings(self.info.id, layers.texts("session"))
        self.layers = layers

    def set(self, key: str, value: object) -> None:
        """Set a setting of the session. Raises ``SettingError``; the old value stays then."""
        self.read_layer()
        had, layers = self.layers, self.layers.set("session", key, value)
        if apps.is_switch(had, layers):
            self.refresh()
            apps.check_switch(had, layers, self.info.name, self.history.commits)
        self.write_layer(layers)

    def refresh(self) -> None:
        """Commits and settings that other writers stored since, without what was erased."""
        try:
            self.drop_erased()
        except NotFoundError:  # the line was moved, and what it had was collected
            self.reload()
        found, head = self.read_layer(), self.history.head
        if found is not None and (found.id, found.branch, found.head) == (self.info.id, self.line.branch, head):
            return  # one look-up said that nothing came since
        newer = self.line.newer(head)
        if newer is None:
            self.reload()
        elif newer:
            self.history.take(newer)

    def drop_erased(self) -> None:
        """Read the history again where anything was erased from the log since. Raises ``NotFoundError`` where it is not
        there any more.
        """
        history, log = self.history, self.store.log
        epoch = log.epoch()
        if epoch != history.epoch:
            head = history.head.hash
            history.renew(log.read_to(self.info.id, head) if head else (), epoch)

    def reload(self) -> None:
        """Read the whole line again: it is another one than before."""
        epoch = self.store.log.epoch()
        self.history = History(self.line.read(), epoch)

    def take(self) -> None:
        """Take the lease on the branch that a turn goes on with. Raises ``BusyError``, ``DetachedError``."""
        self.line.refuse_detached()
        self.holder.take(self.line.branch)

    def take_over(self) -> None:
        """Take the lease from whoever has it, and end their turn."""
        self.line.refuse_detached()
        self.holder.take_over(self.line.branch)
        self.refresh()
        if self.holder.replaced:
            self.end_turn(f"{self.holder.where} took the branch over")
        self.holder.replaced = False

    def begin(self, *, is_new: bool) -> None:
        """Read what others stored; the lease on the branch is ours from here on.

        Where it was taken from an owner who did not end it, the turn that was under way is ended, unless it is gone on
        with: on the head where it stands and on no other, for its owner may only have been stopped.
        """
        self.refresh()
        if self.holder.replaced and is_new:
            self.end_turn(NEVER_FINISHED)
        self.holder.replaced = False

    def end_turn(self, reason: str) -> None:
        """End a turn that somebody else left under way."""
        while drafts := closing_drafts(self.history.commits, reason):
            step, head = Step(new_id(), tuple(drafts), now()), self.history.head
            commits = seal(step, head)
            with suppress(HeadMovedError):
                self.store.log.append(self.info.id, step.id, commits, head, self.line.branch)
                self.line.hooks.stored(commits)
            self.refresh()

    def append(self, drafts: Iterable[Draft]) -> tuple[Commit, ...]:
        """Store ``drafts`` as one step; returns their commits."""
        step = Step(new_id(), tuple(drafts), now())
        if not step.drafts:
            return ()
        stored = self.line.append(step, self.history.head)
        self.history.take([*stored.between, *stored.commits])
        return stored.commits
