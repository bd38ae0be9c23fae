"""``Session``: the history of an openai-agents conversation, in the log.

Promises: items come back as they were added, in their order, with what is encrypted in them; of two that add at once
neither loses any. What ``pop_item`` and ``clear_session`` take away stays in the log, on a branch. Must not: import the
framework, whose protocol it follows by its shape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from thinkback.adapters.framework_log import FrameworkLog, Note, noted, notes
from thinkback.adapters.open_logs import Log
from thinkback.adapters.openai_agents.items import NAME, WORDS, drafts_of, items_said, key_of, without_reasoning
from thinkback.errors import ThinkbackError
from thinkback.log.protocol import Durability
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Commit, Draft, Head, Response
from thinkback.session.ids import new_id
from thinkback.wire.openai_responses.blocks import carrier
from thinkback.wire.values import members_of, plain


class _Unit(NamedTuple):
    """Items that were stored in one step, and what stands before it."""

    start: Head
    items: list[Any]


class Session:
    """A session of openai-agents: ``Runner.run(agent, "Hello", session=Session("user-7", "chats.db"))``.

    ``session_id`` is the name of the session in the log, whoever began it: a conversation of the chat goes on here, and
    the other way round. ``log`` is a path, a ``postgresql://`` address (with its ``tenant``), or an open store.
    ``session_settings`` are the framework's, of which the ``limit`` counts. ``endpoint`` is where the agents' models
    are asked (``openai``): with it, thinkback may send their reasoning there again; ``model`` is theirs, where items do
    not name it and ``input_filter`` is not used. One object is for one run at a time; it costs next to nothing.
    """

    def __init__(
        self,
        session_id: str,
        log: Log,
        *,
        endpoint: str = "",
        model: str = "",
        session_settings: Any = None,
        tenant: str = "default",
        durability: Durability = "full",
    ) -> None:
        if not session_id:
            raise ThinkbackError("a session has no id", next_actions=("give a text that names the conversation",))
        self.session_id = session_id
        self.session_settings = _settings(session_settings)
        self._log = FrameworkLog(NAME, log, tenant=tenant, durability=durability)
        self._model = model
        self._place = self._log.vouched(endpoint) if endpoint else None
        # The models that reasoning in the history is of, by the id or the encrypted value of its item.
        self._minted: dict[str, str] = {}

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items of the conversation, the last ``limit`` of them; without one as many as the settings say."""
        wanted = limit if limit is not None else _limit_of(self.session_settings)
        return await self._log.read(lambda: self._items(wanted))

    async def add_items(self, items: Sequence[Any]) -> None:
        """Store ``items`` behind the others. Raises ``WireError`` for what is no item, ``BusyError`` while somebody
        else has a turn under way here.
        """
        given = [_plain_item(item) for item in items]
        await self._log.write(lambda: self._add(given))

    async def pop_item(self) -> Any | None:
        """Take the last item back and return it; in the log a branch keeps it. ``None`` where there is none."""
        return await self._log.write(lambda: self._log.retried(self._pop))

    async def clear_session(self) -> None:
        """Begin anew, with no items; in the log a branch keeps what was said."""
        await self._log.write(lambda: self._log.retried(self._clear))

    def input_filter(self, data: Any) -> Any:
        """For ``RunConfig(call_model_input_filter=session.input_filter)``, where agents have different models.

        It takes reasoning of another model than the one that is asked out of the input, which that model cannot read,
        and names the model of what is stored next.
        """
        model = data.agent.model
        name = model if isinstance(model, str) else plain(getattr(model, "model", ""))
        given, minted, last = data.model_data, self._minted, self._model
        for item in given.input:  # what is not known came in this run, from the model that was asked last
            fields = members_of(item)
            if last and fields.get("type") == "reasoning" and (key := key_of(fields)):
                minted.setdefault(key, last)
        self._model = name or last
        if not name:
            return given
        kept = without_reasoning(given.input, {key for key, made_by in minted.items() if made_by != name})
        return dataclasses.replace(given, input=kept)

    def close(self) -> None:
        """Let go of the log. Later calls raise ``StoreError``."""
        self._log.close()

    def __repr__(self) -> str:
        return f"<Session {self.session_id}>"

    # -- in the log's threads ------------------------------------------------------------------------------------------

    def _items(self, limit: int | None) -> list[Any]:
        info = self._log.find(self.session_id)
        if info is None or (limit is not None and limit <= 0):
            return []
        if limit is None:
            units = self._units(self._log.store.read(info.id, branch=info.branch))
        else:
            whole = self._log.tail(info, lambda commits: _count(self._units(commits)) >= limit)
            units = self._units(whole)
        items = [item for unit in units for item in unit.items]
        return items if limit is None else items[-limit:]

    def _units(self, commits: Sequence[Commit]) -> list[_Unit]:
        units: list[_Unit] = []
        for found in notes(NAME, commits):
            if isinstance(found, Note):
                self._learn(found.commits)
                units.append(_Unit(found.start, found.value))
                continue
            self._learn(found)
            response = ""
            for commit, items in items_said(found):
                if commit.response and commit.response == response:
                    units[-1].items.extend(items)
                else:
                    start = Head(commit.parents[0], commit.seq - 1) if commit.parents else Head()
                    units.append(_Unit(start, items))
                response = commit.response
        return units

    def _learn(self, commits: Sequence[Commit]) -> None:
        """Note which model each piece of reasoning is of."""
        models = {
            commit.response: commit.value.origin.requested_model
            for commit in commits
            if isinstance(commit.value, Response)
        }
        for commit in commits:
            value = commit.value
            if isinstance(value, ThinkingBlock) and models.get(commit.response):
                for key in (carrier(value, "item_id"), carrier(value, "encrypted")):
                    if key:
                        self._minted[key] = models[commit.response]

    def _add(self, items: list[Any]) -> None:
        if not items:
            return
        thoughts = (key_of(item) for item in items if item.get("type") == "reasoning")
        model = next((self._minted[key] for key in thoughts if key in self._minted), self._model)
        drafts = noted(NAME, items, drafts_of(items, new_id, model, self._place), WORDS)
        self._log.retried(lambda: self._append(drafts))

    def _append(self, drafts: Sequence[Draft]) -> None:
        info = self._log.begun(self.session_id)
        self._log.append(info, drafts, info.head)

    def _pop(self) -> Any | None:
        info = self._log.find(self.session_id)
        if info is None:
            return None
        units = self._units(self._log.tail(info, lambda commits: _count(self._units(commits)) > 0))
        unit = next((unit for unit in reversed(units) if unit.items), None)
        if unit is None:
            return None
        left = unit.items[:-1]
        drafts = noted(NAME, left, drafts_of(left, new_id, self._model, self._place), WORDS) if left else []
        self._log.replace(info, info.head, unit.start, drafts)
        return unit.items[-1]

    def _clear(self) -> None:
        info = self._log.find(self.session_id)
        if info is not None and info.head.seq >= 0:
            self._log.replace(info, info.head, Head(), [])


def _count(units: Sequence[_Unit]) -> int:
    return sum(len(unit.items) for unit in units)


def _settings(given: Any) -> Any:
    """The framework's settings; their members in a mapping are that as well."""
    if not isinstance(given, Mapping):
        return given
    from agents import SessionSettings

    return SessionSettings(**given)


def _limit_of(settings: Any) -> int | None:
    found = getattr(settings, "limit", None)
    return found if isinstance(found, int) else None


def _plain_item(item: Any) -> dict[str, Any]:
    """An item as JSON; the framework's own objects are that as well."""
    if isinstance(item, Mapping):
        return members_of(dict(item))
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        return members_of(dump(exclude_unset=True, mode="json"))
    raise ThinkbackError(
        f"{type(item).__name__} is no item of a session",
        next_actions=("give what openai-agents gives: objects with a type or a role",),
    )
