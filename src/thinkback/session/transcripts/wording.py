"""Payloads in a few words, for lists; opaque values as kind and length only."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from thinkback.model.blocks import Block, Media
    from thinkback.model.commits import Message, Payload


def first_words(payload: Payload) -> str:
    """A payload in a few words."""
    from thinkback.model import blocks, commits
    from thinkback.session.transcripts.endings import ending

    match payload:
        case commits.Message():
            return with_media(payload)
        case blocks.Text():
            return payload.text
        case blocks.ThinkingBlock():
            if payload.thought or blocks.is_place(payload):
                return payload.thought or "(no text)"
            return " ".join(("(thought, text withheld)", *lengths(payload)))
        case blocks.ToolCall():
            return f"{payload.name}({payload.arguments})"
        case blocks.ToolResult():
            return payload.content
        case blocks.Media():
            return media_label(payload)
        case blocks.Unknown():
            return f"({len(payload.wire)} characters that are not understood)"
        case commits.Tools():
            return ", ".join(tool.name for tool in payload.tools)
        case commits.Usage():
            counts = (("input", payload.input), ("output", payload.output), ("reasoning", payload.reasoning))
            numbers = [f"{name} {count}" for name, count in counts if count is not None] or ["(not reported)"]
            return ", ".join([*numbers, *(f"{name}: what was reported is no count" for name in payload.invalid)])
        case commits.Response():
            model = payload.origin.served_model or payload.origin.requested_model
            failed = payload.error.message if payload.error else ""
            told = failed if payload.error else ending(payload.outcome)
            return ", ".join(word for word in (model, payload.finish, told) if word)
        case commits.Request():
            if "endpoint" not in payload.target:
                return "(asked elsewhere)"  # a client kept what it said of the response that follows
            return f"{payload.target['endpoint']} {payload.target['model']}, rule {', '.join(payload.rules)}"
        case commits.TurnEnded():
            return payload.state if payload.reason == payload.state else f"{payload.state} {payload.reason}".rstrip()
        case commits.PermissionDecision():
            return f"{payload.tool} {payload.decision} by {payload.by}: {payload.note or payload.reason}".rstrip(": ")
        case commits.Repair():
            return f"{payload.stage}: {payload.refusal}"
        case commits.Annotation():
            said = [payload.priority or ("default" if payload.default else ""), *payload.tags, payload.reason]
            return " ".join(word for word in [payload.target[:8], *said, payload.message] if word)
        case commits.Content() | commits.BranchSummary():
            return payload.text
        case commits.Compaction():
            return f"{payload.strategy}: {payload.describe()}"
        case commits.Merge():
            return f"{payload.branch} {payload.head[:8]}"
        case commits.Erased():
            return f"({payload.notice})"
        case _:
            assert_never(payload)


def with_media(message: Message) -> str:
    """The text of a message and, in a line each, what images and files go with it."""
    from thinkback.model.blocks import Media

    media = [media_label(part) for part in message.parts if isinstance(part, Media)]
    return "\n".join([*([message.text] if message.text else []), *media])


def media_label(media: Media) -> str:
    """``[image/png cat.png]``."""
    where = media.url if media.url.startswith(("https:", "http:")) else ""
    return f"[{' '.join(word for word in (media.media_type, media.name or where) if word)}]"


def lengths(block: Block) -> list[str]:
    """The carriers of a block."""
    from thinkback.model.blocks import carriers_of

    return [f"({carrier.kind}, {len(carrier.value)} characters)" for carrier in carriers_of(block)]
