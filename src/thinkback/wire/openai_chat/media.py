"""Images, sounds, videos and files as content parts of a user message, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Media
from thinkback.wire import data_urls
from thinkback.wire.values import plain

_GUESSED = {"image_url": "image/*", "video_url": "video/*", "input_audio": "audio/*", "file": "application/*"}


def is_media(part: Any) -> bool:
    """Whether a content part is one of these."""
    return isinstance(part, Mapping) and str(part.get("type")) in _GUESSED


def read_part(part: Mapping[str, Any]) -> Media:
    """A content part as media; what is not understood stays in ``wire``."""
    kind = str(part["type"])
    inner = part.get(kind)
    wire = canonical.source(dict(part))
    if isinstance(inner, str):
        inner = {"url": inner}
    if not isinstance(inner, Mapping):
        return Media(_GUESSED[kind], wire=wire)
    if kind == "input_audio":
        form = str(inner.get("format") or "*")
        return Media(f"audio/{form}", data=plain(inner.get("data")), wire=wire)
    url = plain(inner.get("url") or inner.get("file_data"))
    name = plain(inner.get("filename"))
    media_type, data = data_urls.split(url) or ("", "")
    if data:
        return Media(media_type or _GUESSED[kind], data=data, name=name, wire=wire)
    return Media(_GUESSED[kind], url=url, name=name, wire=wire)


def part(media: Media) -> bytes:
    """Media as a content part. Raises ``UnsupportedContent`` for what chat completions have no part for."""
    family = media.media_type.partition("/")[0]
    source = data_urls.address(media)
    if source and family in ("image", "video"):
        return canonical.encode({"type": f"{family}_url", f"{family}_url": {"url": source}})
    if media.data and family == "audio":
        form = media.media_type.partition("/")[2]
        return canonical.encode({"type": "input_audio", "input_audio": {"data": media.data, "format": form}})
    if media.data:
        named = {"filename": media.name} if media.name else {}
        return canonical.encode({"type": "file", "file": {"file_data": source, **named}})
    raise UnsupportedContent(
        f"chat completions take {media.media_type} as data, not by address"
        if media.url
        else "this part has no content",
        details={"media_type": media.media_type, "dialect": "openai-chat"},
        next_actions=("give the content itself in base64",),
    )
