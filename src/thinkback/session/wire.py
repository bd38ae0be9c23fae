"""thinkback without its HTTP: plan a request, send it by anything, take the response in; adopt a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thinkback.drive.sync import now
from thinkback.drive.tools import offered
from thinkback.errors import ProviderError, ThinkbackError
from thinkback.model import canonical
from thinkback.model.blocks import Origin, Text, ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Message, Response, Tools
from thinkback.session import requests
from thinkback.session.reply import Reply
from thinkback.turn import events, orphans
from thinkback.turn.dialects import dialect
from thinkback.turn.machine import Turn
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.session.session import Session


class Wire:
    """``plan``, send ``plan.url``, ``plan.headers``, ``plan.body``, then ``ingest`` what came back."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def plan(
        self,
        prompt: str | Sequence[Mapping[str, Any]] | None = None,
        *,
        tool_results: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Plan:
        """The next request, after ``tool_results`` (call id to text) and ``prompt`` are stored. Options as ``chat``.

        Raises ``ReplayRefused`` where the endpoint demands reasoning that may not be sent, ``CredentialError``
        without a key.
        """
        requests.check_options(options)
        session = self._session
        session._refresh()
        session._add_results(tool_results or {})
        drafts = orphans.closing_drafts(session._history.commits, new_turn=prompt is not None)
        tools = offered(options["tools"])[0] if options.get("tools") is not None else None
        system = options.get("system")
        if system is not None and system != orphans.last_system(session._history.commits):
            drafts.append(Draft("system", Message(system)))
        if tools is not None and tools != session._history.tools:
            drafts.append(Draft("tools", Tools(tools)))
        if prompt is not None:
            drafts.append(Draft("user", requests.message(prompt)))
        session._append(drafts)
        plan = session._plan(options, with_key=True, tools=tools)
        session._planned = plan
        return plan

    def ingest(
        self,
        body: bytes | str | Iterable[bytes],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        *,
        plan: Plan | None = None,
    ) -> Reply:
        """Take in the response to ``plan`` (the last one): its body whole or in pieces, cut anywhere.

        Returns a ``Reply``; its ``state`` is ``None`` where its calls wait for results. Raises ``ProviderError`` for
        an error status: ``details["repaired"]`` is true where the next ``plan`` leaves out what was refused.
        """
        session = self._session
        sent = plan or session._planned
        if sent is None:
            raise ThinkbackError("there is no plan to ingest a response for", next_actions=("call wire.plan first",))
        session._planned = None
        pieces = [body.encode() if isinstance(body, str) else body] if isinstance(body, bytes | str) else body
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        return _Ingest(session, sent).run(pieces, status, lowered)

    def adopt(
        self, messages: Sequence[Mapping[str, Any]], *, minted_by: tuple[str, str] | None = None
    ) -> tuple[Commit, ...]:
        """Take over a history the program holds; returns the new commits.

        What the session already has is recognised and only the rest is added. Opaque values of unknown origin are
        kept and not replayed; ``minted_by=(endpoint, model)`` vouches for theirs. Raises ``ThinkbackError`` when the
        histories differ.
        """
        session = self._session
        session._refresh()
        origin = self._origin(minted_by)
        known = visible(session._history.commits)
        drafts = dialect(origin.dialect).read_messages(messages, _new_id, origin)
        groups = _by_message(drafts)
        theirs = [_visible_of(group) for group in groups]
        if theirs[: len(known)] != known:
            at = next((i for i, pair in enumerate(zip(theirs, known, strict=False)) if pair[0] != pair[1]), len(theirs))
            raise ThinkbackError(
                f"messages[{at}] differs from what the session holds",
                details={"message": at},
                next_actions=("adopt it into a new session",),
            )
        return session._append([draft for group in groups[len(known) :] for draft in group])

    def _origin(self, minted_by: tuple[str, str] | None) -> Origin:
        if minted_by is None:
            return Origin("openai-chat", "", "")
        endpoint, model = minted_by
        place = self._session._place.changed(self._session._store.rulebook, endpoint=endpoint, model=model)
        target = place.target(self._session._store.rulebook)
        return Origin(target.endpoint.dialect, target.base_url, model, model, target.account, target.account_known)


class _Ingest:
    """Runs the turn machine over a response that somebody else fetched."""

    def __init__(self, session: Session, plan: Plan) -> None:
        self._session = session
        self._plan = plan
        ask, _ = session._ask(None, {})
        ask.plan = lambda: plan
        self._turn = Turn(session._history, ask, _new_id, lambda: 0.0)
        self._outcome: events.Outcome | None = None
        self._request = ""
        self._again = ""

    def run(self, pieces: Iterable[bytes], status: int, headers: dict[str, str]) -> Reply:
        self._do(self._turn.on(events.Began(now())))
        self._do(self._turn.on(events.Head(self._request, status, headers, now())))
        for piece in pieces:
            self._do(self._turn.on(events.Bytes(self._request, piece, now())))
        self._do(self._turn.on(events.Closed(self._request, now())))
        if self._outcome is None:
            raise ProviderError(
                self._again,
                details={"status": status, "repaired": True},
                next_actions=("plan and send again: what was refused is left out",),
            )
        if self._outcome.error is not None:
            raise self._outcome.error
        return Reply(self._outcome, None)

    def _do(self, commands: list[events.Command]) -> None:
        for command in commands:
            match command:
                case events.Send():
                    self._request = self._request or command.id
                case events.Append():
                    self._append(command)
                case events.Done():
                    self._outcome = command.outcome
                case events.Emit() if getattr(command.delta, "state", "") in ("repairing", "retrying"):
                    self._again = getattr(command.delta, "detail", "")
                case _:
                    pass

    def _append(self, command: events.Append) -> None:
        from thinkback.drive.log import append

        session = self._session
        stored = append(session._store.log, session.id, command.step, session._history.head)
        self._do(self._turn.on(events.Appended(command.id, stored.commits, now(), stored.between)))


def visible(commits: Sequence[Commit]) -> list[tuple[object, ...]]:
    """What a program that holds only visible messages sees of the log, message by message."""
    drafts = [Draft(c.kind, c.value, c.response, c.index) for c in commits]
    return [_visible_of(group) for group in _by_message(drafts)]


def _by_message(drafts: Sequence[Draft]) -> list[list[Draft]]:
    groups: dict[object, list[Draft]] = {}
    for at, draft in enumerate(drafts):
        if draft.kind in ("user", "system", "tool_result"):
            groups[at] = [draft]
        elif draft.response and draft.kind in ("response", "reasoning", "assistant", "tool_call", "other", "media"):
            groups.setdefault(draft.response, []).append(draft)
    return list(groups.values())


def _visible_of(group: list[Draft]) -> tuple[object, ...]:
    values = [draft.value for draft in group]
    first = values[0]
    if isinstance(first, Message):
        return (group[0].kind, first.text.strip(), tuple(part.wire for part in first.parts if part.wire))
    if isinstance(first, ToolResult):
        return ("tool", first.id, first.content)
    text = "".join(value.text for value in values if isinstance(value, Text)).strip()
    calls = tuple((v.id, v.name, _arguments(v.arguments)) for v in values if isinstance(v, ToolCall))
    complete = isinstance(first, Response) and first.complete
    return ("assistant", text, calls, complete)


def _arguments(source: str) -> str:
    """Arguments as canonical JSON where they are JSON: programs re-serialise them."""
    try:
        return canonical.encode(canonical.decode(source)).decode()
    except ValueError:
        return source


def _new_id() -> str:
    from thinkback.session.session import new_id

    return new_id()
