"""Media inside of addresses: ``data:`` URLs in base64."""

from __future__ import annotations

from thinkback.model.blocks import Media


def split(url: str) -> tuple[str, str] | None:
    """(MIME type, base64) of a ``data:`` URL; ``None`` for any other."""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:") and head.endswith(";base64")):
        return None
    return head.removeprefix("data:").removesuffix(";base64"), data


def data_url(media: Media) -> str:
    """The data of ``media`` as a URL."""
    return f"data:{media.media_type};base64,{media.data}"


def address(media: Media) -> str:
    """The URL of ``media``, else its data as one; nothing where there is no content."""
    return media.url or (data_url(media) if media.data else "")
