"""Images and documents as content blocks of a user message, there and back."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Media
from thinkback.wire.values import plain

_GUESSED = {"image": "image/*", "document": "application/pdf"}


def is_media(part: Mapping[str, Any]) -> bool:
    """Whether a content block is one of these."""
    return str(part.get("type")) in _GUESSED


def read_part(part: Mapping[str, Any]) -> Media:
    """A content block as media; ``wire`` is kept where more stands in it than is understood."""
    wire = canonical.source(dict(part))
    media = _read(str(part["type"]), part.get("source"), plain(part.get("title")))
    rebuilt = (media.data or media.url) and canonical.decode(block(media)) == part
    return media if rebuilt else Media(media.media_type, media.data, media.url, media.name, wire=wire)


def _read(kind: str, source: Any, name: str) -> Media:
    if not isinstance(source, Mapping):
        return Media(_GUESSED[kind], name=name)
    data, media_type = plain(source.get("data")), plain(source.get("media_type")) or _GUESSED[kind]
    match source.get("type"):
        case "base64" if media_type.startswith("image/") == (kind == "image"):
            return Media(media_type, data=data, name=name)
        case "text":
            return Media("text/plain", data=base64.b64encode(canonical.raw(data)).decode(), name=name)
        case "url":
            return Media(_GUESSED[kind], url=plain(source.get("url")), name=name)
        case _:
            return Media(_GUESSED[kind], name=name)


def block(media: Media) -> bytes:
    """Media as a content block. Raises ``UnsupportedContent`` for what messages have no block for."""
    family = media.media_type.partition("/")[0]
    named = {"title": media.name} if media.name else {}
    if family == "image" and (media.data or media.url):
        return canonical.encode({"type": "image", "source": _source(media)})
    if media.media_type == "application/pdf" and (media.data or media.url):
        return canonical.encode({"type": "document", "source": _source(media), **named})
    if family == "text" and media.data:
        source = {"type": "text", "media_type": "text/plain", "data": _plain(media)}
        return canonical.encode({"type": "document", "source": source, **named})
    raise UnsupportedContent(
        f"messages take images, PDF files and plain text, not {media.media_type}"
        if media.data
        else f"messages take {media.media_type} as data, not by address"
        if media.url
        else "this part has no content",
        details={"media_type": media.media_type, "dialect": "anthropic"},
        next_actions=("give the content as an image, a PDF file or text, in base64",),
    )


def _source(media: Media) -> dict[str, str]:
    if media.data:
        return {"type": "base64", "media_type": media.media_type, "data": media.data}
    return {"type": "url", "url": media.url}


def _plain(media: Media) -> str:
    try:
        return base64.b64decode(media.data, validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise UnsupportedContent(
            "the text of this file is not UTF-8 in base64",
            details={"media_type": media.media_type, "dialect": "anthropic"},
            next_actions=("encode the file's text as UTF-8, then as base64",),
        ) from None
