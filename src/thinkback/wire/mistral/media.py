"""Images, sounds and documents as chunks of a user message, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Media
from thinkback.wire import data_urls

_GUESSED = {
    "image_url": "image/*",
    "document_url": "application/*",
    "input_audio": "audio/*",
    "file": "application/*",
}
_KIND_OF_FAMILY = {
    "image": "image_url",
    "audio": "input_audio",
    "application": "document_url",
    "text": "document_url",
}


def is_media(chunk: Any) -> bool:
    """Whether a content chunk is one of these."""
    return isinstance(chunk, Mapping) and str(chunk.get("type")) in _GUESSED


def read_chunk(chunk: Mapping[str, Any]) -> Media:
    """A content chunk as media; what is not understood stays in ``wire``."""
    kind = str(chunk["type"])
    inner = chunk.get(kind)
    source = inner.get("url") if isinstance(inner, Mapping) else inner
    source = source if isinstance(source, str) else ""
    name = chunk.get("document_name")
    media_type, data = data_urls.split(source) or ("", "")
    is_plain = kind == "input_audio" and not data and "://" not in source
    return Media(
        media_type or _GUESSED[kind],
        data=source if is_plain else data,
        url="" if is_plain or data else source,
        name=name if isinstance(name, str) else "",
        wire=canonical.source(dict(chunk)),
    )


def chunk(media: Media) -> bytes:
    """Media as a content chunk. Raises ``UnsupportedContent`` for what Mistral has none for."""
    kind = _KIND_OF_FAMILY.get(media.media_type.partition("/")[0])
    if kind is None or not (media.url or media.data):
        raise UnsupportedContent(
            f"Mistral takes images, sounds and documents, not {media.media_type}"
            if kind is None
            else f"this {media.media_type} has no content",
            details={"media_type": media.media_type, "dialect": "mistral"},
            next_actions=("give an image, a sound or a document, in base64 or by its address",),
        )
    if kind == "input_audio":
        return canonical.encode({"type": kind, kind: media.url or media.data})
    source = data_urls.address(media)
    named = {"document_name": media.name} if media.name and kind == "document_url" else {}
    return canonical.encode({"type": kind, kind: source, **named})
