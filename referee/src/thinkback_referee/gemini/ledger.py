"""What the models said and under which signatures, so that a signature that comes back can be recognised.

Signatures are bytes on the wire's other side: standard and URL-safe base64 of the same bytes are the same signature.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..jsons import as_list, as_object, as_objects, as_text
from ..streams import json_events


@dataclass(frozen=True, slots=True)
class Mint:
    """One signature: for whom it was issued, and which thought it stands for.

    ``call`` names the function on whose call it came; empty: it came on something else. ``text`` is the text beside
    it, None where it is not known or not text. ``account``: the key or project that paid.
    """

    host: str
    model: str
    account: str = ""
    thought: str = ""
    call: str = ""
    text: str | None = None


class Ledger:
    """All signatures issued so far."""

    def __init__(self) -> None:
        self._mints: dict[bytes, Mint] = {}

    def add(self, signature: str, mint: Mint) -> None:
        """Note that the signature was issued."""
        self._mints[octets(signature)] = mint

    def find(self, signature: str) -> Mint | None:
        """What is known of a signature."""
        return self._mints.get(octets(signature))

    def learn(self, host: str, model: str, response: object) -> None:
        """Note the signatures of a recorded response: an object, a list of chunks, or the text of an event stream."""
        for part in _parts_of(response):
            signature = as_text(part.get("thoughtSignature"))
            if signature:
                call = as_text(as_object(part.get("functionCall")).get("name"))
                self.add(signature, Mint(host, model, call=call))


def octets(signature: str) -> bytes:
    """The bytes behind a signature; its own characters where it is no base64."""
    try:
        return base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return signature.encode()


def _parts_of(response: object) -> Iterator[Mapping[str, object]]:
    for chunk in _chunks_of(response):
        for candidate in as_list(chunk.get("candidates")):
            yield from as_objects(as_object(as_object(candidate).get("content")).get("parts"))


def _chunks_of(response: object) -> list[Mapping[str, object]]:
    if not isinstance(response, str):
        return [as_object(chunk) for chunk in (response if isinstance(response, list) else [response])]
    return json_events(response)
