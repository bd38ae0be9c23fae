"""Commits: the canonical events of the log, their payloads, and how they are hashed.

A commit's hash covers the format version, parents, kind, payload digest, edit target, response id and index, and
time, so two events are never one commit and an erased payload leaves the chain verifiable.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

from thinkback.model import canonical
from thinkback.model.blocks import Block, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.tables import html_table, markdown_table

FORMAT_VERSION = 1

Outcome: TypeAlias = Literal[
    "",
    "answered",
    "tool_calls",
    "max_tokens",
    "max_tokens_in_reasoning",
    "reasoning_only",
    "empty",
    "refused",
    "safety",
    "paused",
    "failed",
    "cut",
]
"""How a response came out; see ``docs/format.md``."""
TurnState: TypeAlias = Literal[
    "completed", "partial_failed", "failed", "interrupted", "timed_out", "capped", "denied", "stalled"
]
Effect: TypeAlias = Literal["reads", "writes", "runs"]
"""What a tool does to the world: it only looks, it changes files, or it runs something that may do anything."""
Kind: TypeAlias = Literal[
    "system",
    "tools",
    "user",
    "assistant",
    "reasoning",
    "tool_call",
    "tool_result",
    "other",
    "media",
    "permission_decision",
    "request",
    "response",
    "provider_usage",
    "turn_ended",
    "repair",
    "annotation",
    "content",
    "compaction",
    "branch_summary",
    "merge",
]


class Priority(StrEnum):
    """What a person, or a content type, wants of a commit when a context is built.

    ``SKIP`` stays away, ``NORMAL`` goes as the settings say, ``IMPORTANT`` must survive in a summary, ``PINNED`` goes
    word for word whatever is summarised around it.
    """

    SKIP = "skip"
    NORMAL = "normal"
    IMPORTANT = "important"
    PINNED = "pinned"


class Message(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="message"):
    """A system or user message: text, or parts where it holds more than text.

    ``wire`` is set for a message adopted from a history: its source text as the program held it. ``dialect`` is the
    one that it and the ``wire`` of its parts are written in; other dialects are told what was understood. ``source`` is
    a digest of the id that another program gave the entry it was imported from.

    ``before`` is the hash of the commit that a system message stands before, where a program put it among what there
    was already; empty: it stands where it came.
    """

    text: str
    parts: tuple[Text | Media | Unknown, ...] = ()
    wire: str = ""
    dialect: str = ""
    source: str = ""
    before: str = ""


class Tool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as offered to the model. ``parameters`` is a JSON schema as source text.

    ``wire`` is a definition as ``dialect`` writes it; a tool that the provider runs has nothing else but a name.
    ``strict``: calls are held to the schema; ``None`` says nothing of it, as ``wire`` may.
    """

    name: str
    description: str = ""
    parameters: str = "{}"
    wire: str = ""
    dialect: str = ""
    strict: bool | None = None


class Tools(msgspec.Struct, frozen=True, tag="tools"):
    """The tools of the session from here on."""

    tools: tuple[Tool, ...]


MOST_TOKENS = 100_000_000
"""No response has more tokens in or out: a larger number is a fault of whoever reports it."""
USAGE_COUNTS = ("input", "output", "reasoning", "cached", "cache_write")
"""The fields of ``Usage`` that are counts."""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="usage"):
    """Token counts as the provider reported them (``None``: not reported); ``wire`` is its own object.

    ``counted`` says what its dialect leaves out of which number: ``cache_beside_input`` where ``input`` is without
    cached tokens, ``reasoning_beside_output`` where ``output`` is without reasoning. Nothing: the rule row says it.
    ``program`` names the program from whose history the response was imported: it counts without a request. A copy of
    the response has none. A number that cannot be a count (below zero, not finite, no whole number, above
    ``MOST_TOKENS``) counts as not reported, whoever made the value; ``invalid`` names it. ``last_input`` is what the
    last call was given, cached tokens included, where the provider made several for one response.
    """

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    counted: tuple[Literal["cache_beside_input", "reasoning_beside_output"], ...] = ()
    wire: str = ""
    program: str = ""
    invalid: tuple[str, ...] = ()
    last_input: int | None = None

    def __post_init__(self) -> None:
        for name in (*USAGE_COUNTS, "last_input"):
            value: object = getattr(self, name)
            if value is None or (type(value) is int and 0 <= value <= MOST_TOKENS):
                continue
            found = token_count(value)
            msgspec.structs.force_setattr(self, name, found)
            if found is None and name not in self.invalid:
                msgspec.structs.force_setattr(self, "invalid", (*self.invalid, name))

    def whole_input(self) -> int | None:
        """Count the input with what was read from a cache and written to it."""
        if self.input is None or "cache_beside_input" not in self.counted:
            return self.input
        return self.input + (self.cached or 0) + (self.cache_write or 0)

    def whole_output(self) -> int | None:
        """Count the output with the reasoning."""
        if self.output is None or "reasoning_beside_output" not in self.counted:
            return self.output
        return self.output + (self.reasoning or 0)


def token_count(value: object) -> int | None:
    """``value`` as a count of tokens; ``None`` where it cannot be one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as the provider or the network gave it; never holds a key.

    ``upstream`` is the error a router passed on from behind it.
    """

    message: str
    status: int = 0
    type: str = ""
    code: str = ""
    upstream: str = ""


class Response(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="response"):
    """Opens a response. Its blocks follow, tied to it by (response, index).

    ``complete``: the provider finished it; only then may it be replayed. ``content`` says how the content field
    stood on the wire, ``message`` holds message fields that no block owns, ``envelope`` the rest of the response,
    both as JSON source text. ``repeats`` names reasoning fields that carried the same text as a kept block.
    ``finish`` is the provider's word for how it ended, ``outcome`` ours.
    """

    origin: Origin
    id: str = ""
    finish: str | None = None
    complete: bool = True
    content: Literal["absent", "null", "text"] = "absent"
    message: str = ""
    envelope: str = ""
    repeats: tuple[str, ...] = ()
    error: Failure | None = None
    blocks: int = 0
    outcome: Outcome = ""


RECIPE = 2
"""How requests are built today: what the same commits, settings and data come to.

A change that builds other bytes of them gives it the next number, and goes on building what records of earlier ones
say, so that ``why`` can show what was sent. 1: any edit voided reasoning that is bound to its prefix and was made
before it, and none went before what had to stay away; of what was imported the model did not count.
"""


class Request(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="request"):
    """What was sent, for audit; never replayed. Decisions are recomputed from it and checked by ``sent_digest``, which
    is of the body as it was planned: the gateway and the transport may send that in a client's own spelling.

    ``head`` is the hash of the last commit the request was built from. Digests are hex SHA-256. ``basis`` is the
    data that the request was built by (endpoint, rule row, model facts) as JSON source text; it is large and seldom
    changes, so it is empty where an earlier request of the session has the same ``basis_digest``, and stands last, as
    it is stored apart. ``size`` is the estimate of its tokens, 0 where nobody made one: with what the provider reports
    it tells the size of the next one. ``recipe`` says how it was built from them (see ``RECIPE``). ``chain`` is there
    where reasoning is bound to its prefix: of how many responses reasoning went, and the digest of what is opaque in
    that of the last.
    """

    target: dict[str, str]
    settings: dict[str, str]
    rules: tuple[str, ...]
    params: str
    head: str
    system_digest: str
    tools_digest: str
    messages_digest: str
    carriers_digest: str
    sent_digest: str
    basis_digest: str
    recipe: int = 1
    chain: tuple[int, str] | None = None
    size: int = 0
    basis: str = ""  # last: stores keep it apart, and find it at the end


class TurnEnded(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="turn_ended"):
    """The terminal state of a turn."""

    state: TurnState
    reason: str = ""


class PermissionDecision(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag="permission_decision"):
    """Whether a call of the response before it might run; never replayed.

    ``call`` is the id of the call, ``tool`` and ``effect`` say what it would have done. ``by`` decided: the mode or a
    rule of the settings, the words of a command that only reads, or a person, whose ``note`` the model is told.
    ``always``: the person's word is for such calls from then on. ``reason`` is why it was decided so, or was asked.
    """

    call: str
    tool: str
    decision: Literal["allowed", "denied"]
    by: Literal["mode", "rule", "command", "person"]
    effect: Effect = "runs"
    reason: str = ""
    note: str = ""
    always: bool = False


class Repair(msgspec.Struct, frozen=True, omit_defaults=True, tag="repair"):
    """A refused request was mended. ``blocks`` are commit hashes that compile reads as invalid for this target.

    Of stage ``flatten`` they are responses, which go to it as text.
    """

    stage: Literal["server_state", "restore", "server_drop", "block", "older_turns", "all", "flatten"]
    blocks: tuple[str, ...]
    refusal: str
    endpoint: str
    model: str


class Annotation(msgspec.Struct, frozen=True, omit_defaults=True, tag="annotation"):
    """What a person says about a commit. Later annotations win, field by field; the history is kept.

    ``target`` is a commit hash; empty, it is the nearest commit before this one that does not speak of others itself (a
    hash is not known before its step is sealed). ``priority=None`` says nothing about it, ``default`` takes an
    earlier one back. ``retain`` are texts that a summary must contain. ``metadata`` is a JSON object as source text.
    """

    target: str = ""
    priority: Priority | None = None
    default: bool = False
    reason: str = ""
    retain: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    untag: tuple[str, ...] = ()
    message: str = ""
    metadata: str = ""


class Content(msgspec.Struct, frozen=True, omit_defaults=True, tag="content"):
    """A commit of a content type that a program defined; the type's defaults are kept with it, as they were then.

    ``compression_priority``: of two, the one with the higher number stays longer. ``data`` is JSON source text for
    programs, which no model sees. ``source`` as in ``Message``.
    """

    content_type: str
    text: str
    role: Literal["system", "user", "assistant"] = "user"
    priority: Priority = Priority.NORMAL
    compression_priority: int = 50
    data: str = ""
    source: str = ""


CompactionStrategy: TypeAlias = Literal[
    "deterministic", "model", "manual", "sliding_window", "tool_results", "middle_out", "thoughts"
]


class Compaction(msgspec.Struct, frozen=True, omit_defaults=True, tag="compaction"):
    """A visible checkpoint: from here on, requests say ``summary`` instead of a run of commits. Nothing is deleted.

    ``first`` and ``last`` are the hashes of the run's ends, both inside, or empty where nothing is summarised. ``kept``
    names what goes word for word behind the summary: messages of the run by their hash, responses by that of their
    ``response`` commit (all blocks and results go along). ``trimmed`` is (hash of a tool result, the text it goes out
    with). A checkpoint takes the place of every earlier one whose run lies in its own; runs never overlap otherwise.

    ``model`` wrote the summary and used ``usage`` for it; ``before`` and ``after`` are effective tokens, estimated.
    ``reason`` is what asked for it, ``note`` what went wrong: of a checkpoint that came to nothing, that is all.
    ``source`` as in ``Message``. ``shortened`` are hashes of thoughts: the next edit of each is a shorter form that
    ``model`` wrote.
    """

    strategy: CompactionStrategy
    summary: str = ""
    first: str = ""
    last: str = ""
    kept: tuple[str, ...] = ()
    trimmed: tuple[tuple[str, str], ...] = ()
    model: str = ""
    usage: Usage | None = None
    before: int = 0
    after: int = 0
    reason: str = ""
    note: str = ""
    source: str = ""
    shortened: tuple[str, ...] = ()

    def describe(self) -> str:
        """Say what requests have from here on: the summary, or what goes shorter."""
        if self.summary or not self.shortened:
            return self.summary or f"[{len(self.trimmed)} results trimmed]"
        return f"[{len(self.shortened)} thoughts shortened]"


class BranchSummary(msgspec.Struct, frozen=True, omit_defaults=True, tag="branch_summary"):
    """What came out of another line of work: a child session or a branch, told in one message.

    ``session`` and ``head`` say where it can be read in full; ``purpose`` is what it was made for.
    """

    text: str
    session: str = ""
    branch: str = ""
    head: str = ""
    purpose: str = ""


class Merge(msgspec.Struct, frozen=True, omit_defaults=True, tag="merge"):
    """Another branch was taken in; this commit has two parents, the second is ``head``.

    ``base`` is the last commit that both had. What the other branch added stands before this commit, as ``copies``
    (hash there, hash here); ``resolved`` is (hash of the commit in conflict, who won: ours, theirs or edited).
    """

    branch: str
    head: str
    base: str = ""
    copies: tuple[tuple[str, str], ...] = ()
    resolved: tuple[tuple[str, str], ...] = ()


LEFT_OUT = "left out of this export"
"""The reason in the tombstones of a file for sharing."""
NOT_RECORDED = "not recorded"
"""The reason in the tombstones of what was never stored, as whoever recorded it had to leave it out."""


class Erased(msgspec.Struct, frozen=True, omit_defaults=True, tag="erased"):
    """A tombstone: the payload that the commit's digest is of is gone, and with it the carriers of its response.

    ``remainder`` is what is left of it as a payload's JSON source, where only a part was taken out. ``source`` is the
    ``source_of`` the payload, so that no other copy of a history brings it back.
    """

    reason: str
    time: int
    remainder: str = ""
    source: str = ""

    @property
    def notice(self) -> str:
        """What happened, in words: what an export or a recording left out was not erased."""
        if self.reason == LEFT_OUT:
            return "left out of the export"
        if self.reason == NOT_RECORDED:
            return self.reason
        return f"erased: {self.reason}" if self.reason else "erased"


Payload: TypeAlias = (
    Message
    | Tools
    | Text
    | ThinkingBlock
    | ToolCall
    | ToolResult
    | Media
    | Unknown
    | Usage
    | Response
    | Request
    | TurnEnded
    | PermissionDecision
    | Repair
    | Annotation
    | Content
    | Compaction
    | BranchSummary
    | Merge
    | Erased
)


class Draft(msgspec.Struct, frozen=True):
    """A commit before it has a place: ``response`` and ``index`` tie a block to its response.

    ``edit`` is the hash of the commit whose content this one replaces; ``parents`` are further parents (of a merge).
    """

    kind: Kind
    value: Payload
    response: str = ""
    index: int = -1
    edit: str = ""
    parents: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """What is appended in one transaction: whole or not at all. ``id`` makes a repeated append harmless."""

    id: str
    drafts: tuple[Draft, ...]
    time: int


class Commit(msgspec.Struct, frozen=True, gc=False):
    """One canonical event in its place. ``time`` is microseconds since 1970 UTC, from the caller's clock.

    ``payload`` is the canonical JSON of ``value``; ``digest`` its hex SHA-256.
    """

    hash: str
    parents: tuple[str, ...]
    seq: int
    kind: Kind
    value: Payload
    payload: bytes
    digest: str
    time: int
    response: str = ""
    index: int = -1
    edit: str = ""

    def __repr__(self) -> str:
        return f"<Commit {self.hash[:8]}: {self.kind}, seq {self.seq}>"

    def _repr_html_(self) -> str:
        """For notebooks: what it says, without opaque values."""
        return html_table(_HEADINGS, [self._row])

    def _repr_markdown_(self) -> str:
        """The same as Markdown."""
        return markdown_table(_HEADINGS, [self._row])

    @property
    def _row(self) -> tuple[str, ...]:
        value = surviving(self.value)
        words = next(filter(None, (getattr(value, name, "") for name in _WORDS)), "")
        return self.hash[:8], self.kind, str(self.seq), str(words)


_HEADINGS = ("commit", "kind", "seq", "text")
_WORDS = ("thought", "text", "content", "arguments", "summary", "state")
"""Fields of payloads that people read; no carrier and no verbatim object is among them."""


class Head(msgspec.Struct, frozen=True):
    """The commit the next one follows; an empty session has ``Head("", -1)``."""

    hash: str = ""
    seq: int = -1


PAYLOAD_OF: dict[str, type[object]] = {
    "system": Message,
    "tools": Tools,
    "user": Message,
    "assistant": Text,
    "reasoning": ThinkingBlock,
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "other": Unknown,
    "media": Media,
    "request": Request,
    "response": Response,
    "provider_usage": Usage,
    "turn_ended": TurnEnded,
    "permission_decision": PermissionDecision,
    "repair": Repair,
    "annotation": Annotation,
    "content": Content,
    "compaction": Compaction,
    "branch_summary": BranchSummary,
    "merge": Merge,
}
_BLOCKS: tuple[Kind, ...] = ("assistant", "reasoning", "tool_call", "tool_result", "media", "other")
KIND_OF = {PAYLOAD_OF[kind]: kind for kind in _BLOCKS}


def commit_hash(
    parents: tuple[str, ...], kind: str, digest: str, edit: str, response: str, index: int, time: int
) -> str:
    """Hex SHA-256 over the fields of a commit, joined by newlines (docs/format.md, "Hashes")."""
    text = f"{FORMAT_VERSION}\n{','.join(parents)}\n{kind}\n{digest}\n{edit}\n{response}\n{index}\n{time}"
    return hashlib.sha256(text.encode()).hexdigest()


def block_draft(block: Block, response: str, index: int) -> Draft:
    """The draft of one block of a response; its origin is kept once, on the response."""
    if block.origin is not None:
        block = msgspec.structs.replace(block, origin=None)
    return Draft(KIND_OF[type(block)], block, response, index)


def decode_payload(data: bytes) -> Payload:
    """The value stored as ``data``. Raises ``msgspec.DecodeError`` when the bytes are no payload."""
    payload: Payload = canonical.decode(data, Payload)
    return payload


def surviving(value: Payload) -> Payload:
    """What is left of a payload that was erased in part; any other is itself.

    Raises ``msgspec.DecodeError`` when a tombstone's remainder is no payload.
    """
    if isinstance(value, Erased) and value.remainder:
        return decode_payload(canonical.raw(value.remainder))
    return value


def source_of(value: Payload) -> str:
    """A digest of the id by which the source of a payload knows it: of an imported entry, or of a tool call."""
    match value:
        case Message() | Content() | Compaction():
            return value.source
        case ToolCall() | ToolResult():
            return canonical.digest(b"call\0" + value.id.encode("utf-8", "surrogatepass"))[:24] if value.id else ""
        case Erased():
            return value.source or (source_of(surviving(value)) if value.remainder else "")
        case _:
            return ""


def fits(kind: str, value: Payload) -> bool:
    """Whether commits of this kind say such things; what was erased said nothing, or what is left of it."""
    left = surviving(value)
    return isinstance(left, Erased) or type(left) is PAYLOAD_OF.get(kind)
