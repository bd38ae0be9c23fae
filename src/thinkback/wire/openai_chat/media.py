"""Images, sounds, videos and files as content parts of a user message, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Media

_GUESSED = {"image_url": "image/*", "video_url": "video/*", "input_audio": "audio/*", "file": "application/*"}


def is_media(part: Any) -> bool:
    """Whether a content part is one of these."""
    return isinstance(part, Mapping) and part.get("type") in _GUESSED


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
        return Media(f"audio/{form}", data=_text(inner.get("data")), wire=wire)
    url = _text(inner.get("url") or inner.get("file_data"))
    name = _text(inner.get("filename"))
    media_type, data = split_data_url(url)
    if data:
        return Media(media_type or _GUESSED[kind], data=data, name=name, wire=wire)
    return Media(_GUESSED[kind], url=url, name=name, wire=wire)


def part(media: Media) -> bytes:
    """Media as a content part. Raises ``UnsupportedContent`` for what chat completions have no part for."""
    family = media.media_type.partition("/")[0]
    source = media.url or (f"data:{media.media_type};base64,{media.data}" if media.data else "")
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


def split_data_url(url: str) -> tuple[str, str]:
    """(MIME type, base64) of a ``data:`` URL; empty for any other."""
    if not url.startswith("data:"):
        return "", ""
    head, comma, data = url[5:].partition(",")
    return (head.removesuffix(";base64"), data) if comma and head.endswith(";base64") else ("", "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
