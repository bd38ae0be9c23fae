"""Google's error object, the sentences with which it refuses bodies that are not of its schema, and how keys travel."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from ..jsons import JsonObject
from ..verdict import Verdict
from .profiles import Host

_STATUS = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND"}


def google_error(code: int, message: str, status: str = "") -> JsonObject:
    """The body of an error."""
    return {"error": {"code": code, "message": message, "status": status or _STATUS.get(code, "INTERNAL")}}


def refuse(message: str, reason: str, *, code: int = 400, status: str = "") -> Verdict:
    """A refusal in Google's shape."""
    return Verdict(code, google_error(code, message, status), reason)


def refuse_credentials(host: Host, *, missing: bool) -> Verdict:
    """The host's answer to a request without credentials, or with wrong ones."""
    code, message, status = host.no_credentials if missing else host.bad_credentials
    return refuse(message, "no credentials" if missing else "unauthorized", code=code, status=status)


def refuse_name(name: str, place: str) -> Verdict:
    """The refusal of a member that the schema does not have."""
    where = f" at '{place}'" if place else ""
    text = f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
    return refuse(text, f"unknown field {name}{where}")


def refuse_value(place: str, kind: str, value: object) -> Verdict:
    """The refusal of a value of the wrong type."""
    return refuse(f"Invalid value at '{place}' ({kind}), {value}", f"bad value at {place}")


def studio_key(path: str, headers: Mapping[str, str]) -> str:
    """The key of a request; empty when there is none."""
    query = parse_qs(urlsplit(path).query).get("key", [""])
    return headers.get("x-goog-api-key", "") or query[0]
