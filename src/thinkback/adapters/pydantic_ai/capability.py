"""``Reasoning``: a capability of pydantic-ai that repairs requests whose reasoning is refused, and explains them.

A refusal that thinkback knows is answered by the same request with less reasoning: first without that of earlier turns,
then without any. What was refused stays away for the rest of the conversation, as far as that model is asked. Must not:
change the history of the run.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelHTTPError, RetryModelRequest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ThinkingPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext

from thinkback.errors import NotFoundError, SettingError
from thinkback.session import config
from thinkback.turn.repair import is_about_reasoning, is_missing_reasoning

_NONE, _OLDER, _ALL = range(3)
"""Which reasoning is left out of a request: none, that of earlier turns, all."""
_KNOWN = 1_024


class Sent(msgspec.Struct, frozen=True):
    """What became of the reasoning in a request to ``model``: ``held`` pieces were in the history and ``went`` went
    back, in the last of ``sent`` requests; ``refusals`` are the provider's words to the others.
    """

    model: str
    held: int
    went: int
    sent: int
    refusals: tuple[str, ...] = ()

    @property
    def repaired(self) -> bool:
        """Whether the provider refused reasoning first."""
        return self.sent > 1

    def __str__(self) -> str:
        """As lines for people."""
        lines = [f"{self.model}: {self.went} of {self.held} pieces of reasoning went back"]
        lines += [f"sent {self.sent} times: the provider refused reasoning first"] if self.repaired else []
        return "\n".join([*lines, *(f"refused: {text}" for text in self.refusals)])


class _Known:
    """What is known of one conversation: how much of it a model refused, and the request under way."""

    def __init__(self) -> None:
        # Up to which message each model gets no reasoning.
        self.refused: dict[str, int] = {}
        self.level = _NONE
        self.refusals: list[str] = []
        self.held = self.went = 0


class Reasoning(AbstractCapability[Any]):
    """``Agent(..., capabilities=[Reasoning()])``. One may be shared by agents and runs."""

    def __init__(self) -> None:
        self._conversations: OrderedDict[str, _Known] = OrderedDict()
        self._last: Sent | None = None

    def why(self) -> Sent:
        """What became of the reasoning in the last request that was answered. Raises ``NotFoundError`` before."""
        if self._last is None:
            raise NotFoundError(
                "no request was answered with this capability",
                next_actions=("give it to the agent: Agent(..., capabilities=[reasoning])",),
            )
        return self._last

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """A request begins."""
        known = self._known(ctx)
        known.level, known.refusals = _NONE, []
        return request_context

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Take out what this model refused."""
        known = self._known(ctx)
        messages = request_context.messages
        upto = max(known.refused.get(_name(request_context), 0), _reach(known.level, messages))
        known.held = sum(1 for _ in _thoughts(messages))
        if upto:
            messages = [_without(message) if at < upto else message for at, message in enumerate(messages)]
            request_context = dataclasses.replace(request_context, messages=messages)
        known.went = sum(1 for _ in _thoughts(messages))
        return request_context

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Ask for another attempt where the refusal is about reasoning and there is less to send."""
        known, name = self._known(ctx), _name(request_context)
        text = _text(error)
        if text and is_missing_reasoning(text):  # what was taken out is wanted back; what is not there cannot be given
            if not (known.went < known.held and known.refused.pop(name, 0)) or known.refusals:
                raise error
            known.refusals.append(text)
            raise RetryModelRequest from error
        if not text or not known.went or known.level == _ALL:
            raise error
        if not is_about_reasoning(text, _refusals(request_context.model)):
            raise error
        known.refusals.append(text)
        known.level += 1
        if known.level == _OLDER and not _has_older(request_context.messages):
            known.level += 1
        raise RetryModelRequest from error

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Note what went, and what this model refuses from here on."""
        known, name = self._known(ctx), _name(request_context)
        if known.level:
            known.refused[name] = max(known.refused.get(name, 0), _reach(known.level, request_context.messages))
        self._last = Sent(name, known.held, known.went, 1 + len(known.refusals), tuple(known.refusals))
        return response

    def _known(self, ctx: RunContext[Any]) -> _Known:
        key = ctx.conversation_id or ctx.run_id or ""
        found = self._conversations.setdefault(key, _Known())
        self._conversations.move_to_end(key)
        while len(self._conversations) > _KNOWN:
            self._conversations.popitem(last=False)
        return found


def _name(context: ModelRequestContext) -> str:
    return str(context.model.model_id)


def _refusals(model: Any) -> tuple[str, ...]:
    """How the host of a model words its refusals, as far as our data knows it."""
    rulebook = config.rulebook()
    try:
        endpoint = rulebook.endpoint_for_url(str(model.base_url or ""))
    except (AttributeError, SettingError):  # models of one's own have none
        return ()
    today = datetime.now(UTC).date().isoformat()
    rule, _ = rulebook.rule_for(endpoint.id, str(model.model_name), today)
    return tuple(rule.refusals)


def _text(error: Exception) -> str:
    """What the provider said to a request that it refused."""
    if not isinstance(error, ModelHTTPError) or error.status_code not in (400, 403, 404, 422):
        return ""
    return f"{error.body}" if error.body is not None else str(error)


def _thoughts(messages: Sequence[ModelMessage]) -> Iterator[ThinkingPart]:
    for message in messages:
        if isinstance(message, ModelResponse):
            yield from (part for part in message.parts if isinstance(part, ThinkingPart))


def _reach(level: int, messages: Sequence[ModelMessage]) -> int:
    """Up to which message a request of that level has no reasoning."""
    return {_NONE: 0, _OLDER: _open_turn(messages), _ALL: len(messages)}[level]


def _open_turn(messages: Sequence[ModelMessage]) -> int:
    """Where the turn begins that is under way."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts):
            return at
    return 0


def _has_older(messages: Sequence[ModelMessage]) -> bool:
    return any(True for _ in _thoughts(messages[: _open_turn(messages)]))


def _without(message: ModelMessage) -> ModelMessage:
    """``message`` without its reasoning, and without the ids that tie other parts to it."""
    if not isinstance(message, ModelResponse) or not any(isinstance(part, ThinkingPart) for part in message.parts):
        return message
    parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
    untied = [dataclasses.replace(part, id=None) if getattr(part, "id", None) else part for part in parts]
    return dataclasses.replace(message, parts=untied)
