"""Parts of what a user or the system says: text, images, sounds and files, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thinkback.errors import UnsupportedContent
from thinkback.model import canonical
from thinkback.model.blocks import Media, Text, Unknown
from thinkback.wire import data_urls
from thinkback.wire.values import plain

NAME = "openai-responses"


def part(part: Text | Media | Unknown) -> bytes:
    """A part as this dialect writes it, verbatim if it was. Raises ``UnsupportedContent``."""
    match part:
        case Text() if not part.wire:
            return b'{"type":"input_text","text":%b}' % canonical.string(part.text)
        case Media() if not part.wire:
            return canonical.encode(_media(part))
        case _:
            return canonical.raw(part.wire)


def _media(media: Media) -> dict[str, Any]:
    family, _, form = media.media_type.partition("/")
    if family == "image" and (media.url or media.data):
        return {"type": "input_image", "image_url": data_urls.address(media)}
    if family == "audio" and media.data:
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
    if family not in ("image", "audio", "video") and media.data:
        named = {"filename": media.name} if media.name else {}
        return {"type": "input_file", "file_data": data_urls.data_url(media), **named}
    if family not in ("image", "audio", "video") and media.url:
        return {"type": "input_file", "file_url": media.url}
    raise unsupported(media)


def unsupported(media: Media) -> UnsupportedContent:
    """There is no part for it."""
    return UnsupportedContent(
        f"the Responses API takes no {media.media_type} here",
        details={"media_type": media.media_type, "dialect": NAME},
        next_actions=("send images by address or in base64, sounds and files in base64", "leave the part out"),
    )


def read_part(part: Any) -> Text | Media | Unknown:
    """A part of a message; kept verbatim beside what was understood."""
    wire = canonical.source(part)
    kind = part.get("type") if isinstance(part, Mapping) else None
    match kind:
        case "input_text" | "output_text" | "text" if isinstance(part.get("text"), str):
            return Text(part["text"], wire=wire)
        case "input_image":
            return _read_url("image/*", part.get("image_url"), "", wire)
        case "input_file":
            url = part.get("file_data") or part.get("file_url")
            return _read_url("application/*", url, plain(part.get("filename")), wire)
        case "input_audio" if isinstance(part.get("input_audio"), Mapping):
            sound = part["input_audio"]
            return Media(f"audio/{plain(sound.get('format')) or '*'}", data=plain(sound.get("data")), wire=wire)
        case _:
            return Unknown(wire)


def _read_url(guess: str, url: Any, name: str, wire: str) -> Media:
    """Media from its address, or from a ``data:`` URL that has it inside; a file id alone stays in ``wire``."""
    address = plain(url)
    if inside := data_urls.split(address):
        media_type, data = inside
        return Media(media_type or guess, data=data, name=name, wire=wire)
    return Media(guess, url=address, name=name, wire=wire)
