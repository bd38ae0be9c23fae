"""``ChatMessageHistory``: messages of LangChain in a session of the log.

Promises: messages come back as they were added, with their reasoning, signatures and calls; one with an id is stored
once. What ``clear`` takes away stays in the log, on a branch. What was said in the session elsewhere is there too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

from thinkback.adapters.framework_log import FrameworkLog, Note, noted, notes
from thinkback.adapters.open_logs import Log
from thinkback.errors import ThinkbackError
from thinkback.formats.history import Answer, placed
from thinkback.formats.parts import call, thought
from thinkback.log.protocol import Durability, SessionInfo
from thinkback.model import canonical
from thinkback.model.blocks import Block, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Head, Message, Response, surviving
from thinkback.session.ids import new_id
from thinkback.wire import registry
from thinkback.wire.values import members_of, plain

NAME = "langchain"
WORDS = frozenset({"type", "role", "status", "finish_reason", "stop_reason", "model_provider", "model_name", "object"})
_THOUGHT = "reasoning_content"


class ChatMessageHistory(BaseChatMessageHistory):  # type: ignore[misc]
    """The messages of the session ``session_id``, for ``RunnableWithMessageHistory`` and whoever keeps them by hand.

    ``log`` is a path, a ``postgresql://`` address (with its ``tenant``), or an open store. One object costs next to
    nothing, and threads and processes may have several of one session.
    """

    def __init__(
        self,
        session_id: str,
        log: Log,
        *,
        tenant: str = "default",
        durability: Durability = "full",
    ) -> None:
        if not session_id:
            raise ThinkbackError("a history has no id", next_actions=("give a text that names the conversation",))
        self.session_id = session_id
        self._log = FrameworkLog(NAME, log, tenant=tenant, durability=durability)

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages, oldest first."""
        info = self._log.find(self.session_id)
        return _messages(self._line(info)) if info is not None else []

    async def aget_messages(self) -> list[BaseMessage]:
        """The same in a thread of the log."""
        return await self._log.read(lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store ``messages`` behind the others, all or none, but for those whose id is there already. Raises
        ``TypeError`` for what is no message of LangChain, ``BusyError`` while somebody has a turn under way here.
        """
        for message in messages:
            if not isinstance(message, BaseMessage):
                raise TypeError(f"{type(message).__name__} is no message of LangChain")
        self._log.retried(lambda: self._add(messages))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """The same in a thread of the log; a caller that is cancelled waits for its end."""
        await self._log.write(lambda: self.add_messages(messages))

    def clear(self) -> None:
        """Begin anew, with no messages; in the log a branch keeps what was said."""
        self._log.retried(self._clear)

    async def aclear(self) -> None:
        """The same in a thread of the log."""
        await self._log.write(self.clear)

    def close(self) -> None:
        """Let go of the log. Later calls raise ``StoreError``."""
        self._log.close()

    # -- in the log ----------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        info = self._log.begun(self.session_id)
        if info.head.seq >= 0:
            self._log.replace(info, info.head, Head(), [])

    def _add(self, messages: Sequence[BaseMessage]) -> None:
        info = self._log.begun(self.session_id)
        known: set[str | None] = {None}
        if any(message.id for message in messages):
            known |= {message.id for message in _messages(self._line(info))}
        added = []
        for message in messages:
            if not message.id or message.id not in known:
                known.add(message.id)
                added.append(message)
        if added:
            value = canonical.decode(canonical.encode([message_to_dict(message) for message in added]))
            said = [draft for message in added for draft in drafts_of(message)]
            self._log.append(info, noted(NAME, value, said, WORDS), info.head)

    def _line(self, info: SessionInfo) -> Sequence[Commit]:
        return self._log.store.read(info.id, branch=info.branch)


# -- a message, there --------------------------------------------------------------------------------------------------


def drafts_of(message: BaseMessage) -> list[Draft]:
    """What a message says, as commits."""
    if isinstance(message, ToolMessage):
        content = message.content if isinstance(message.content, str) else canonical.source(message.content)
        failed = message.status == "error"
        return [Draft("tool_result", ToolResult(message.tool_call_id, content, message.name or "", is_error=failed))]
    if isinstance(message, AIMessage):
        about = message.response_metadata
        model = plain(about.get("model_name") or about.get("model"))
        answer = Answer(list(_blocks(message)), model=model, id=message.id or "")
        return [placed(draft, NAME) for draft in answer.drafts(NAME, new_id(), "")]
    role = "system" if message.type == "system" else "user"
    said = {"role": role, "content": message.content}
    return list(registry.dialect(registry.CHAT).read_messages([said], new_id))


def _blocks(message: AIMessage) -> Iterator[Block]:
    for part in message.content_blocks:
        match part["type"]:
            case "reasoning":
                said, signature = part.get("reasoning", ""), members_of(part.get("extras")).get("signature", "")
                if said or signature:
                    yield thought(said, _THOUGHT, signature)
            case "text":
                yield Text(part["text"])
    for made in message.tool_calls:
        yield call(made["id"], made["name"], made["args"])


# -- and back ----------------------------------------------------------------------------------------------------------


def _messages(commits: Sequence[Commit]) -> list[BaseMessage]:
    found: list[BaseMessage] = []
    for part in notes(NAME, commits):
        if isinstance(part, Note):
            found += messages_from_dict(part.value)
        else:
            found += _said(part)
    return found


def _said(commits: Sequence[Commit]) -> Iterator[BaseMessage]:
    """What was said elsewhere. Opaque values stay in the log: only the API that made them takes them."""
    answer: list[Any] = []
    for commit in [*commits, None]:
        value = surviving(commit.value) if commit is not None and not commit.edit else None
        if answer and (commit is None or commit.response != answer[0] or isinstance(value, ToolResult)):
            yield _answer(answer[1:])
            answer = []
        if commit is None or commit.edit:
            continue
        if isinstance(value, Response) and value.complete:
            answer = [commit.response]
        elif isinstance(value, Text | ThinkingBlock | ToolCall) and answer:
            answer.append(value)
        elif isinstance(value, ToolResult):
            yield ToolMessage(value.content, tool_call_id=value.id, name=value.name or None)
        elif isinstance(value, Message) and commit.kind == "user":
            yield HumanMessage(value.text)


def _answer(blocks: Sequence[Any]) -> AIMessage:
    thoughts = "\n".join(block.thought for block in blocks if isinstance(block, ThinkingBlock) and block.thought)
    calls = [
        {"name": block.name, "args": members_of(canonical.decode(block.arguments or "{}")), "id": block.id}
        for block in blocks
        if isinstance(block, ToolCall)
    ]
    return AIMessage(
        "".join(block.text for block in blocks if isinstance(block, Text)),
        additional_kwargs={_THOUGHT: thoughts} if thoughts else {},
        tool_calls=calls,
    )
