"""AWS Signature Version 4, the verifying side: written from AWS's public description of the algorithm.

The whole request is checked: method, path, query, the signed headers, the body. What a client must sign here: ``host``,
``x-amz-date``, and the session token where the key needs one. Time is not checked, as the referee has no clock.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote, unquote

from ..transport import Incoming

ALGORITHM = "AWS4-HMAC-SHA256"
SERVICE = "bedrock"


@dataclass(frozen=True, slots=True)
class Credential:
    """A key pair that the referee knows, and the AWS account it belongs to."""

    access_key: str
    secret_key: str
    account: str
    session_token: str = ""
    """What requests with a temporary key must carry."""


KEY = Credential("AKIAREFEREE00000000", "referee/secret/key/of/the/first/account0", "111122223333")
OTHER_KEY = Credential("AKIAREFEREE00000001", "referee/secret/key/of/the/second/account", "444455556666")
TEMPORARY_KEY = Credential(
    "ASIAREFEREE00000000", "referee/secret/key/that/is/temporary0000", KEY.account, "referee-session-token"
)
CREDENTIALS: Mapping[str, Credential] = MappingProxyType(
    {credential.access_key: credential for credential in (KEY, OTHER_KEY, TEMPORARY_KEY)}
)

NO_TOKEN = "Missing Authentication Token"
UNKNOWN_KEY = "The security token included in the request is invalid."
INCOMPLETE = "Authorization header requires 'Credential', 'Signature' and 'SignedHeaders' parameters."
UNSIGNED_HEADER = "'{name}' must be a 'SignedHeader' in the AWS Authorization."
BAD_SCOPE = "Credential should be scoped to correct service: '{service}'."
BAD_DATE = "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP"
MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)
_PART = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request is not let in: the name of the exception and its text."""

    kind: str
    message: str


def verify(incoming: Incoming) -> Credential | Fault:
    """Who signed the request, or what is wrong with its signature."""
    scheme, _, rest = incoming.headers.get("authorization", "").partition(" ")
    if scheme != ALGORITHM:
        return Fault("MissingAuthenticationTokenException", NO_TOKEN)
    parts = dict(_PART.findall(rest))
    scope = parts.get("Credential", "").split("/")
    if len(parts) < 3 or len(scope) != 5:
        return Fault("IncompleteSignatureException", INCOMPLETE)
    credential = CREDENTIALS.get(scope[0])
    if credential is None or credential.session_token != incoming.headers.get("x-amz-security-token", ""):
        return Fault("UnrecognizedClientException", UNKNOWN_KEY)
    signed = parts["SignedHeaders"].split(";")
    fault = _scope_fault(incoming, scope, signed, credential)
    if fault is not None:
        return fault
    wanted = signature(incoming, credential.secret_key, scope[1:], signed)
    same = hmac.compare_digest(wanted, parts["Signature"])
    return credential if same else Fault("InvalidSignatureException", MISMATCH)


def _scope_fault(incoming: Incoming, scope: list[str], signed: list[str], credential: Credential) -> Fault | None:
    _, date, _, service, terminator = scope
    for name in ("host", "x-amz-date", *(("x-amz-security-token",) if credential.session_token else ())):
        if name not in signed:
            return Fault("InvalidSignatureException", UNSIGNED_HEADER.format(name=name))
    if service != SERVICE or terminator != "aws4_request":
        return Fault("InvalidSignatureException", BAD_SCOPE.format(service=SERVICE))
    if incoming.headers.get("x-amz-date", "")[:8] != date:
        return Fault("InvalidSignatureException", BAD_DATE)
    return None


def signature(incoming: Incoming, secret_key: str, scope: list[str], signed: list[str]) -> str:
    """The signature that the request must carry; ``scope`` is date, region, service and terminator."""
    canonical = hashlib.sha256(canonical_request(incoming, signed).encode()).hexdigest()
    text = "\n".join((ALGORITHM, incoming.headers.get("x-amz-date", ""), "/".join(scope), canonical))
    key = f"AWS4{secret_key}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def canonical_request(incoming: Incoming, signed: list[str]) -> str:
    """The request in the form that is hashed: a path segment is encoded once more than on the wire."""
    path, _, query = incoming.path.partition("?")
    headers = [f"{name}:{_SPACES.sub(' ', incoming.headers.get(name, '').strip())}\n" for name in signed]
    body = hashlib.sha256(incoming.body).hexdigest()
    return "\n".join(
        (incoming.method, quote(path, safe="/-_.~"), _query(query), "".join(headers), ";".join(signed), body)
    )


def _query(query: str) -> str:
    pairs = [part.partition("=")[::2] for part in query.split("&") if part]
    encoded = sorted((_encode(name), _encode(value)) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded)


def _encode(text: str) -> str:
    return quote(unquote(text), safe="-_.~")
