"""Images, sounds, videos and files as parts, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Media

# The wire's own spelling, and the one of the SDKs.
_INLINE = ("inlineData", "inline_data")
_FILE = ("fileData", "file_data")


def read_media(part: Mapping[str, Any], carriers: tuple[Carrier, ...]) -> Media | None:
    """The media of a part; ``None`` where it is none, or lacks what makes it some."""
    inline = _first(part, _INLINE)
    if isinstance(inline, Mapping) and isinstance(inline.get("data"), str):
        media = Media(_media_type(inline), data=inline["data"], carriers=carriers)
        return media if media.data and _is_exact(media) else None
    file = _first(part, _FILE)
    url = _first(file, ("fileUri", "file_uri")) if isinstance(file, Mapping) else None
    if isinstance(file, Mapping) and isinstance(url, str) and url:
        return Media(_media_type(file), url=url, carriers=carriers)
    return None


def written(media: Media) -> bytes:
    """The field of a part that holds ``media``. Raises ``UnsupportedContent`` where its content or type is missing."""
    exact = _is_exact(media)
    if media.url:
        kind = b',"mimeType":' + canonical.string(media.media_type) if exact else b""
        return b'"fileData":{"fileUri":%b%b}' % (canonical.string(media.url), kind)
    if media.data and exact:
        data, media_type = canonical.string(media.data), canonical.string(media.media_type)
        return b'"inlineData":{"mimeType":%b,"data":%b}' % (media_type, data)
    raise UnsupportedContent(
        "Gemini takes data only with its exact media type" if media.data else "this part has no content",
        details={"media_type": media.media_type, "dialect": "gemini"},
        next_actions=("give the content in base64 with its media type, such as image/png, or its address",),
    )


def _media_type(holder: Mapping[str, Any]) -> str:
    found = _first(holder, ("mimeType", "mime_type"))
    return found if isinstance(found, str) and found else "*/*"


def _is_exact(media: Media) -> bool:
    return bool(media.media_type) and "*" not in media.media_type


def _first(holder: Mapping[str, Any], names: tuple[str, str]) -> Any:
    return holder.get(names[0], holder.get(names[1]))
