"""Images, sounds, videos and documents as contents, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Media

_FAMILIES = {"image": "image/*", "audio": "audio/*", "video": "video/*", "document": "application/*"}


def read_media(content: Mapping[str, Any]) -> Media | None:
    """The media of a content; ``None`` where it is none, or lacks what makes it some."""
    kind, data, url = content.get("type"), content.get("data"), content.get("uri")
    if not isinstance(kind, str) or kind not in _FAMILIES:
        return None
    found = content.get("mime_type")
    media_type = found if isinstance(found, str) and found else _FAMILIES[kind]
    if isinstance(data, str) and data:
        media = Media(media_type, data=data)
        return media if _is_exact(media) else None
    return Media(media_type, url=url) if isinstance(url, str) and url else None


def written(media: Media) -> bytes:
    """A content that holds ``media``. Raises ``UnsupportedContent`` where its content or type is missing."""
    family = media.media_type.partition("/")[0]
    kind = family if family in _FAMILIES else "document"
    exact = _is_exact(media)
    typed = b',"mime_type":' + canonical.string(media.media_type) if exact else b""
    if media.url:
        return b'{"type":"%b","uri":%b%b}' % (kind.encode(), canonical.string(media.url), typed)
    if media.data and exact:
        return b'{"type":"%b","data":%b%b}' % (kind.encode(), canonical.string(media.data), typed)
    raise UnsupportedContent(
        "Gemini takes data only with its exact media type" if media.data else "this part has no content",
        details={"media_type": media.media_type, "dialect": "gemini-interactions"},
        next_actions=("give the content in base64 with its media type, such as image/png, or its address",),
    )


def _is_exact(media: Media) -> bool:
    return bool(media.media_type) and "*" not in media.media_type
