"""Images as content items, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Media
from thinkback.wire import data_urls
from thinkback.wire.values import plain


def is_media(value: Any) -> bool:
    """Whether a content item is an image."""
    return isinstance(value, Mapping) and value.get("type") == "image_url"


def read_part(value: Mapping[str, Any]) -> Media:
    """A content item as media; what is not understood stays in ``wire``."""
    inner = value.get("image_url")
    url = inner.get("url") if isinstance(inner, Mapping) else inner
    url = plain(url)
    inside = data_urls.split(url)
    media = Media(inside[0], data=inside[1]) if inside else Media("image/*", url=url)
    is_usual = value == {"type": "image_url", "image_url": {"url": url}} and media.media_type.startswith("image/")
    return media if is_usual and url else Media(media.media_type, media.data, media.url, wire=canonical.source(value))


def part(media: Media) -> bytes:
    """An image as a content item. Raises ``UnsupportedContent`` for anything else."""
    url = data_urls.address(media)
    if url and media.media_type.startswith("image/"):
        return b'{"type":"image_url","image_url":{"url":%b}}' % canonical.string(url)
    raise UnsupportedContent(
        f"Cohere takes images in messages, but no {media.media_type}" if url else "this part has no content",
        details={"media_type": media.media_type, "dialect": "cohere"},
        next_actions=("give its text instead", "or give documents in the parameter documents"),
    )
