"""Conversations as commits in a line or two per message, and the next request built from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thinkback.compile import fold
from thinkback.compile.policy import Inputs
from thinkback.log.seal import head_of, seal
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, CarrierKind, Origin, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Commit,
    Compaction,
    Content,
    Draft,
    Erased,
    Kind,
    Message,
    Payload,
    Priority,
    Repair,
    Response,
    Step,
    Tool,
    Tools,
    TurnEnded,
    TurnState,
    Usage,
    block_draft,
)
from thinkback.model.plan import Counts, Writer
from thinkback.model.rule import Endpoint, ModelInfo, Rule
from thinkback.model.target import Decision, Settings, Target, overlay
from thinkback.settings import snapshot
from thinkback.turn.plan import History, Plan
from thinkback.wire.openai_chat import write
from thinkback.wire.registry import dialect

URL = "https://api.example.com/v1"
HERE = Origin("openai-chat", URL, "m1", "m1-served", "acme", True)
ELSEWHERE = Origin("openai-chat", "https://other.example/v1", "m9", "m9", "acme", True)
UNKNOWN = Origin("openai-chat", "", "")
WRITER: Writer = write
ANTHROPIC, BEDROCK, GEMINI = "anthropic", "bedrock", "gemini"
INTERACTIONS, RESPONSES, MISTRAL = "gemini-interactions", "openai-responses", "mistral"


def rule(**fields: Any) -> Rule:
    """A rule row that keeps everything in ``reasoning_content``, with ``fields`` changed."""
    kept = {"form": "field", "open_turn": "should", "later": "should", **fields}
    return Rule(**{"id": "r", "endpoint": "e", "source": "test", "since": "2026-01-01", **kept})


def native(**fields: Any) -> Rule:
    """A rule row that takes reasoning back in its place, and demands it of the turn under way."""
    return rule(**{"form": "native", "open_turn": "must", "missing": ("none",), **fields})


def origin(speech: str, **fields: Any) -> Origin:
    """Who minted what this place's model says in the dialect ``speech``."""
    return msgspec.structs.replace(HERE, dialect=speech, **fields)


def target(row: Rule | None = None, speech: str = "openai-chat", **fields: Any) -> Target:
    """A target under ``row`` that speaks ``speech``; ``fields`` are those of ``Target``."""
    base = Target(Endpoint("e", "E", URL, dialect=speech), URL, "m1", row or rule(), ModelInfo("m1"), "acme", True)
    return msgspec.structs.replace(base, **fields)


def writer_of(wanted: Inputs) -> Writer:
    """The request writer of a target."""
    return dialect(wanted.target.endpoint.dialect).writer


def settings(**fields: Any) -> Settings:
    """Settings that a person set explicitly."""
    names = {
        "include_in_context": "reasoning.includeInContext",
        "strip_from_context": "reasoning.stripFromContext",
        "keep_last": "reasoning.keepLast",
        "context_size": "context.size",
    }
    return Settings(**fields, explicit=frozenset(names.get(name, f"reasoning.{name}") for name in fields))


def think(text: str, field: str = "reasoning_content", **fields: Any) -> ThinkingBlock:
    """A piece of reasoning."""
    return ThinkingBlock(text, source_field=field, **fields)


def tagged(text: str, **fields: Any) -> ThinkingBlock:
    """Reasoning that stood between tags inside ``content``."""
    return ThinkingBlock(text, source_field="content", **{"opening": "<think>", "closing": "</think>", **fields})


def entry(text: str = "", format: str = "anthropic-claude-v1", **fields: Any) -> ThinkingBlock:
    """One ``reasoning_details`` entry: encrypted with ``data``, else text, with a ``signature`` where it has one."""
    data, signature = fields.pop("data", ""), fields.pop("signature", "")
    kind = fields.pop("type", "reasoning.encrypted" if data else "reasoning.text")
    body = {"type": kind, "format": format, "text": text, "data": data, "signature": signature}
    wire = canonical.encode({key: value for key, value in body.items() if value}).decode()
    more = {"carriers": (Carrier("encrypted", data),) if data else (), **fields}
    return ThinkingBlock(text, source_field="reasoning_details", signature=signature, wire=wire, **more)


def thought(speech: str, text: str = "", value: str = "", id: str = "", **fields: Any) -> ThinkingBlock:
    """Reasoning as a response of a native dialect brings it, with its opaque ``value`` and the ``id`` of its item."""
    kept: dict[str, Any] = {"kind": "summary" if text else "none"}
    match speech:
        case "openai-responses":
            pairs: list[tuple[CarrierKind, str]] = [("item_id", id), ("encrypted", value)]
            kept |= {"source_field": "reasoning", "carriers": tuple(Carrier(*pair) for pair in pairs if pair[1])}
        case "gemini":
            carriers = (Carrier("thought_signature", value),) if value else ()
            kept |= {"source_field": "thought", "carriers": carriers}
        case "gemini-interactions":
            kept |= {"source_field": "thought", "signature": value}
        case "bedrock":
            kept |= {"source_field": "reasoningText", "signature": value}
        case _:
            kept |= {"source_field": "thinking", "signature": value}
    return ThinkingBlock(text, **{**kept, **fields})


def redacted(value: str, field: str = "redacted_thinking") -> ThinkingBlock:
    """Reasoning that nobody may read."""
    return ThinkingBlock("", source_field=field, kind="none", carriers=(Carrier("redacted", value),))


def tied(block: Block, id: str, *more: Carrier) -> Any:
    """``block`` as an item with an id."""
    return msgspec.structs.replace(block, carriers=(Carrier("item_id", id), *more))


def say(text: str) -> Text:
    """Visible text."""
    return Text(text)


def call(id: str = "c1", **fields: Any) -> ToolCall:
    """A tool call."""
    return ToolCall(id, "look", "{}", **fields)


def signed_call(id: str = "c1", value: str = "abc", kind: CarrierKind = "thought_signature") -> ToolCall:
    """A tool call that carries an opaque value inside its own object."""
    body = {"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}, "held": value}
    return call(id, wire=canonical.encode(body).decode(), carriers=(Carrier(kind, value),))


class Talk:
    """A conversation under construction; ``commits`` is what the log has, the first of them made at ``start``."""

    def __init__(self, origin: Origin = HERE, start: int = 0) -> None:
        self.origin = origin
        self.start = start
        self.commits: list[Commit] = []
        self._number = 0

    @property
    def responses(self) -> int:
        """How many responses there are."""
        return self._number

    def __repr__(self) -> str:
        return "\n".join(f"{commit.hash[:6]} {commit.kind} {commit.response} {commit.value}" for commit in self.commits)

    def add(self, *drafts: Draft) -> list[Commit]:
        """Append ``drafts`` in one step."""
        number = len(self.commits)
        sealed = seal(Step(str(number), drafts, self.start + number), head_of(self.commits))
        self.commits += sealed
        return sealed

    def note(self, kind: Any, value: Payload, response: str = "") -> Talk:
        """Append one commit of any kind."""
        self.add(Draft(kind, value, response))
        return self

    def system(self, text: str = "Be brief.") -> Talk:
        """A system message."""
        return self.note("system", Message(text))

    def user(self, text: str = "Hello?") -> Talk:
        """A user message."""
        return self.note("user", Message(text))

    def tools(self, *names: str) -> Talk:
        """The tools from here on."""
        return self.note("tools", Tools(tuple(Tool(name) for name in names)))

    def reply(self, *blocks: Block, origin: Origin | None = None, usage: Usage | None = None, **header: Any) -> Talk:
        """A response with its blocks, in one step; ``header`` are fields of ``Response``."""
        self._number += 1
        id = f"resp{self._number}"
        head = Response(**{"origin": origin or self.origin, "content": "text", **header})
        drafts = [Draft("response", head, id), *(block_draft(block, id, at) for at, block in enumerate(blocks))]
        if usage is not None:
            drafts.append(Draft("provider_usage", usage, id))
        self.add(*drafts)
        return self

    def result(self, id: str = "c1", text: str = "42", response: str = "last") -> Talk:
        """A tool result, tied to the last response unless told otherwise."""
        tie = f"resp{self._number}" if response == "last" else response
        return self.note("tool_result", ToolResult(id, text), tie)

    def plan(self, to: Target, wanted: Settings | None = None, **params: Any) -> Plan:
        """The next request, with all that its record needs."""
        made = History(self.commits).plan(to, wanted or Settings(), None, params)
        return msgspec.structs.replace(made, settings=snapshot(wanted or Settings()))

    def answer(self, to: Target, *blocks: Block, wanted: Settings | None = None, **header: Any) -> Talk:
        """A response of ``to``, and the record of the request that brought it."""
        made = self.plan(to, wanted)
        self.note("request", made.record(), f"resp{self._number + 1}")
        account = (to.account, to.account_known)
        minted = Origin(to.endpoint.dialect, to.base_url, to.model, to.model, *account)
        return self.reply(*blocks, **{"origin": minted, "id": f"server{self._number + 1}", **header})

    def end(self, state: TurnState = "completed") -> Talk:
        """The end of the turn."""
        return self.note("turn_ended", TurnEnded(state))

    def repair(self, stage: Any, *blocks: str, endpoint: str = URL, model: str = "m1") -> Talk:
        """A repair commit."""
        return self.note("repair", Repair(stage, blocks, "refused", endpoint, model))

    def annotate(self, hash: str, priority: Priority | None = Priority.SKIP, **fields: Any) -> Talk:
        """What a person says about a commit."""
        return self.note("annotation", Annotation(hash, priority, **fields))

    def edit(self, hash: str, value: Payload) -> Talk:
        """Another content for a commit."""
        kind = next(commit.kind for commit in self.commits if commit.hash == hash)
        self.add(Draft(kind, value, edit=hash))
        return self

    def compact(self, first: str = "", last: str = "", summary: str = "Briefly.", **fields: Any) -> Talk:
        """A checkpoint."""
        return self.note("compaction", Compaction("manual", summary, first, last, **fields))

    def content(self, text: str, role: Any = "user", **fields: Any) -> Talk:
        """A commit of a content type."""
        return self.note("content", Content("note", text, role, **fields))

    def summary(self, text: str, **fields: Any) -> Talk:
        """What came out of other work."""
        return self.note("branch_summary", BranchSummary(text, **fields))

    def erase(self, hash: str, remainder: Payload | None = None, time: int = 0) -> Talk:
        """Put a tombstone in place of a payload, as a store does."""
        left = canonical.encode(remainder).decode() if remainder is not None else ""
        tomb = Erased("gone", time, left)
        self.commits = [
            msgspec.structs.replace(commit, value=tomb) if commit.hash == hash else commit for commit in self.commits
        ]
        return self

    def turn(self, text: str = "Hello?", *blocks: Block, **header: Any) -> Talk:
        """A whole finished turn of one response."""
        return self.user(text).reply(*(blocks or (think(f"on {text}"), say(f"re {text}"))), **header).end()

    def loop(self, text: str = "Look!", first: str = "plan", then: str = "done") -> Talk:
        """A turn under way that called a tool and got its result; ``then`` is for ``answer``."""
        return self.user(text).reply(think(first), call(), content="null").result()

    def hashes(self, kind: Kind = "reasoning") -> list[str]:
        """Hashes of the commits of a kind, edits of others not among them."""
        return [commit.hash for commit in self.commits if commit.kind == kind and not commit.edit]


class Built:
    """A request that was built: what went out and what was said about it."""

    def __init__(self, state: fold.State) -> None:
        self.writer = writer_of(state.inputs)
        self.state, self.request = fold.request(state, self.writer)
        self.raw: list[bytes] = list(self.request.fragments())
        self.decisions: list[Decision] = self.request.decisions()
        self.counts: Counts = self.request.counts(())
        self.end = self.writer.end("m1", (), self.request.system, {})

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as values."""
        return [canonical.decode(each) for each in self.raw]

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(self.request.body(self.writer, self.end))

    @property
    def sent(self) -> dict[str, Any]:
        """The whole body as a value."""
        sent: dict[str, Any] = canonical.decode(self.body)
        return sent

    @property
    def fields(self) -> list[str | None]:
        """``reasoning_content`` of each assistant message."""
        return [each.get("reasoning_content") for each in self.messages if each["role"] == "assistant"]

    @property
    def actions(self) -> list[str]:
        """What was done with each text and carrier, in order of the log."""
        return [decision.action for decision in self.decisions]

    @property
    def dropped(self) -> list[tuple[str, str]]:
        """What stayed away and why."""
        return [(decision.what, decision.reason) for decision in self.decisions if decision.action == "drop"]

    @property
    def texts(self) -> list[str]:
        """What each message says: its content, or the names of its calls."""
        return [each["content"] or ",".join(call["id"] for call in each["tool_calls"]) for each in self.messages]

    @property
    def reasons(self) -> list[str]:
        """Why."""
        return [decision.reason for decision in self.decisions]

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that go along."""
        added = fold.added(self.state.policy, self.request).params
        return overlay(added, self.state.policy.rule.thinking_off) if self.request.off else added

    def digests(self) -> Any:
        """The digests for the record."""
        return self.request.digests(self.writer, self.end, ())


def inputs(
    to: Target | Rule | None = None,
    wanted: Settings | None = None,
    *,
    params: dict[str, Any] | None = None,
    tools: bool = False,
) -> Inputs:
    """What to build for."""
    return Inputs(to if isinstance(to, Target) else target(to), wanted or Settings(), params or {}, tools)


def build(
    talk: Talk | Sequence[Commit],
    to: Target | Rule | None = None,
    wanted: Settings | None = None,
    *,
    params: dict[str, Any] | None = None,
    tools: bool = False,
) -> Built:
    """The next request of ``talk`` to a target (or one under a rule row), folded from empty."""
    commits = talk.commits if isinstance(talk, Talk) else talk
    made = inputs(to, wanted, params=params, tools=tools)
    return Built(fold.fold(made, commits, writer_of(made)))
