"""What an editor says and what it is shown: a prompt's content, servers of tools, and a stored history as updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import acp
from acp import schema

from thinkback.errors import UnsupportedContent
from thinkback.log.transcript import pieces_of
from thinkback.model.blocks import Media, ThinkingBlock, ToolCall, ToolResult, is_shown
from thinkback.model.commits import Commit, Message
from thinkback.model.curation import curate
from thinkback.model.texts import BETWEEN_THOUGHTS
from thinkback.servers.acp import calls
from thinkback.servers.acp.calls import Update
from thinkback.session.requests import Prompt
from thinkback.settings.apps import Server

# What is shown of a history as the agent's words.
_SAID = frozenset({"assistant", "media", "branch_summary"})


def prompt_of(blocks: Sequence[Any]) -> Prompt:
    """A prompt from the editor's content blocks; text alone stays text. Raises ``UnsupportedContent``."""
    parts = [_part(block) for block in blocks]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(parts) else parts


def _part(block: Any) -> str | Media:
    match block:
        case schema.TextContentBlock():
            return str(block.text)
        case schema.ImageContentBlock():
            return Media(block.mime_type, data=block.data, url="" if block.data else block.uri or "")
        case schema.ResourceContentBlock():
            return f"[{block.name}]({block.uri})"
        case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as resource):
            return f'<file uri="{resource.uri}">\n{resource.text}\n</file>'
        case schema.EmbeddedResourceContentBlock(resource=schema.BlobResourceContents() as resource):
            return Media(resource.mime_type or "application/octet-stream", data=resource.blob)
        case _:
            raise UnsupportedContent("sound is not understood", next_actions=("send text, images or files",))


def read_server(given: Any) -> Server:
    """An MCP server as the editor names it. Raises ``UnsupportedContent`` for one that only the editor can reach."""
    match given:
        case schema.McpServerStdio():
            variables = {variable.name: variable.value for variable in given.env}
            return Server(command=given.command, args=tuple(given.args), env=variables)
        case schema.HttpMcpServer():
            return Server(url=given.url, headers={header.name: header.value for header in given.headers})
        case _:
            raise UnsupportedContent(
                f"the MCP server {given.name!r} is of a kind that is not understood",
                next_actions=("name it with a command, or with an address of the kind http",),
            )


def replayed(commits: Sequence[Commit], workspace: str, *, thoughts: bool) -> Iterator[Update]:
    """A history as the editor would have seen it: what holds now, in order; ``thoughts`` among it or not."""
    curation = curate(commits)
    known: dict[tuple[str, str], ToolCall] = {}
    thinking = ""
    answered = {(commit.response, commit.value.id) for commit in commits if isinstance(commit.value, ToolResult)}
    for commit in commits:
        if commit.edit:
            continue
        match curation.value(commit):
            case Message() as message if commit.kind == "user":
                yield from _message(message)
            case ThinkingBlock() as block:
                if thoughts and block.thought and is_shown(block):
                    goes_on = commit.response != "" and commit.response == thinking
                    thinking = commit.response
                    yield acp.update_agent_thought_text(f"{BETWEEN_THOUGHTS if goes_on else ''}{block.thought}")
            case ToolCall() as call:
                known[commit.response, call.id] = call
                is_open = (commit.response, call.id) not in answered
                yield calls.announced(call, workspace, "failed" if is_open else "in_progress")
            case ToolResult() as result:
                yield calls.ended(result, known.get((commit.response, result.id)), workspace)
            case value if commit.kind in _SAID:
                text = "\n".join(f"({p.label})" if p.form == "media" else p.text for p in pieces_of(value))
                if text:
                    yield acp.update_agent_message_text(text)
            case _:
                pass


def _message(message: Message) -> Iterator[Update]:
    if message.text:
        yield acp.update_user_message_text(message.text)
    for part in message.parts:
        if isinstance(part, Media) and part.data and part.media_type.startswith("image/"):
            yield acp.update_user_message(acp.image_block(part.data, part.media_type))
