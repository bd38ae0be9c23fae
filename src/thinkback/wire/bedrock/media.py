"""Images, videos and documents as content blocks, there and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Media
from thinkback.wire.values import plain

# MIME type to the format's name; in Converse the kind of block goes with it.
_FORMATS = {
    "image": {f"image/{name}": name for name in ("png", "jpeg", "gif", "webp")},
    "video": {
        "video/x-matroska": "mkv",
        "video/quicktime": "mov",
        "video/mp4": "mp4",
        "video/webm": "webm",
        "video/x-flv": "flv",
        "video/mpeg": "mpeg",
        "video/x-ms-wmv": "wmv",
        "video/3gpp": "three_gp",
    },
    "document": {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "application/msword": "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.ms-excel": "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "text/html": "html",
        "text/plain": "txt",
        "text/markdown": "md",
    },
}
_TYPES = {kind: {form: media_type for media_type, form in known.items()} for kind, known in _FORMATS.items()}
_GUESSED = {"image": "image/*", "video": "video/*", "document": "application/*"}
# A document's name may hold nothing else, and no two spaces in a row.
_NOT_IN_NAMES = re.compile(r"[^\w\-()\[\]]+|_+", re.ASCII)


def is_media(value: Any) -> bool:
    """Whether a content block is one of these."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in _FORMATS


def read_part(value: Mapping[str, Any], source: str) -> Media:
    """A content block as media; ``source`` is kept where it says more than was understood."""
    kind, inner = next(iter(value.items()))
    inner = inner if isinstance(inner, Mapping) else {}
    form, held, name = inner.get("format"), inner.get("source"), inner.get("name")
    media_type = _TYPES[kind].get(str(form), _GUESSED[kind])
    place = held if isinstance(held, Mapping) else {}
    location = place.get("s3Location")
    media = Media(
        media_type,
        data=plain(place.get("bytes")),
        url=plain(location.get("uri")) if isinstance(location, Mapping) else "",
        name=plain(name),
    )
    if (media.data or media.url) and media_type != _GUESSED[kind] and _object(media) == value:
        return media
    return msgspec.structs.replace(media, wire=source)


def part(media: Media) -> bytes:
    """Media as a content block. Raises ``UnsupportedContent`` for what Converse has none for."""
    return canonical.encode(_object(media))


def _object(media: Media) -> dict[str, Any]:
    kind, form = _kind_of(media.media_type)
    if media.data:
        source: dict[str, Any] = {"bytes": media.data}
    elif media.url.startswith("s3://"):
        source = {"s3Location": {"uri": media.url}}
    else:
        raise _unsupported(media, "Converse takes media as data or from S3, not by address")
    if not form:
        raise _unsupported(media, f"Converse has no content block for {media.media_type}")
    inner: dict[str, Any] = {"format": form, "source": source}
    if kind == "document":
        inner["name"] = _NOT_IN_NAMES.sub(" ", media.name).strip()[:200] or "document"
    return {kind: inner}


def _kind_of(media_type: str) -> tuple[str, str]:
    for kind, known in _FORMATS.items():
        if media_type in known:
            return kind, known[media_type]
    return "", ""


def _unsupported(media: Media, message: str) -> UnsupportedContent:
    return UnsupportedContent(
        message,
        details={"media_type": media.media_type, "dialect": "bedrock"},
        next_actions=("give the content itself in base64, in a format that Converse names",),
    )
