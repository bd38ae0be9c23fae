"""Bedrock's runtime: signed requests, binary event streams, Claude's rules wrapped, other models' own.

Converse for all its models, InvokeModel for Claude, whole and streamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from ..anthropic import body_of, minted, organisation, parsed, rejected
from ..anthropic.judge import judge as judge_claude
from ..anthropic.ledger import Ledger
from ..anthropic.profiles import Profile
from ..anthropic.request import Caller, Request
from ..anthropic.view import view_of
from ..credentials import accepted, bearer
from ..jsons import JsonObject
from ..persona import Asked, Provider, Rendered
from ..prompts import Prompts
from ..script import Step
from ..transport import Incoming
from ..verdict import Verdict, first
from .judge import NO_REASONING, OWN, passed_on, plain_faults, refuse, shape_faults, thinks, unknown_model, wrapped
from .profiles import CONVERSE, INVOKE, PLAIN, Plain, models, plain_for, pretended, profile_for
from .render import converse, exception, invoke
from .sigv4 import CREDENTIALS, KEY, OTHER_KEY, TEMPORARY_KEY, UNKNOWN_KEY, Credential, Fault, verify
from .translate import betas_of, messages_body

__all__ = ["API_KEY", "BEDROCK", "KEY", "NO_REASONING", "OTHER_KEY", "TEMPORARY_KEY", "Credential", "Invocation"]
API_KEY = "bedrock-api-key-referee"
"""A bearer key of the same account as ``KEY``."""
_PATH = re.compile(r"/model/(?P<model>[^/]+)/(?P<call>converse|converse-stream|invoke|invoke-with-response-stream)")


@dataclass(frozen=True)
class Invocation:
    """A request to a model that is served: one of Claude's, or ``row``."""

    body: JsonObject
    account: str
    invoked: bool
    """By InvokeModel, not by Converse."""
    profile: Profile | None
    row: Plain | None

    @cached_property
    def request(self) -> Request:
        """The request in the Messages format, whatever format it came in."""
        body, account = self.body, self.account
        if self.row is not None:
            return Request(pretended(self.row, thinks(self.row, body)), messages_body(body), Caller(PLAIN, account))
        assert self.profile is not None
        if self.invoked:
            return Request(self.profile, body_of(INVOKE, body), Caller(INVOKE, account, betas_of(body)))
        betas = betas_of(body.get("additionalModelRequestFields"))
        return Request(self.profile, messages_body(body), Caller(CONVERSE, account, betas))


def _read(host: str, path: str, incoming: Incoming, ledger: Ledger) -> Asked | Verdict | None:
    """A request to a model, signed or with an API key."""
    found = _PATH.fullmatch(path)
    if incoming.method != "POST" or found is None:
        return None
    if not bearer(incoming.headers):
        signer = verify(incoming)
        if isinstance(signer, Fault):
            return refuse(signer.message, "unauthorized", status=403, kind=signer.kind)
    elif not accepted(bearer(incoming.headers)):
        return refuse(UNKNOWN_KEY, "unauthorized", status=403, kind="UnrecognizedClientException")
    body = parsed(incoming)
    if isinstance(body, Verdict):
        return passed_on(body)
    return Asked(host, path, incoming.headers, body, unquote(found["model"]), "stream" in found["call"])


def _request(asked: Asked, ledger: Ledger) -> Invocation | Verdict:
    invoked, profile = "/invoke" in asked.path, profile_for(asked.model)
    row = None if invoked else plain_for(asked.model)
    if profile is None and row is None:
        return unknown_model(asked.model)
    return Invocation(asked.body, _account(asked), invoked, profile, row)


def _account(asked: Asked) -> str:
    """The AWS account of a key."""
    key = bearer(asked.headers)
    if key:
        return KEY.account if key.partition(".")[0] == API_KEY else organisation(key)
    name = asked.headers["authorization"].partition("Credential=")[2].partition("/")[0]
    return CREDENTIALS[name].account


def _faults(invocation: Invocation, ledger: Ledger) -> Iterator[Verdict]:
    """The refusals of the service, then of the model's own server."""
    body = invocation.body
    if not invocation.invoked:
        yield from shape_faults(body)
    elif body.get("anthropic_version") != INVOKE.version:
        yield refuse("anthropic_version: Field required", "missing anthropic_version")
    for name in ("model", "stream") if invocation.invoked else ():
        if name in body:
            yield refuse(f"{name}: Extra inputs are not permitted", f"unexpected {name}")
    if invocation.row is not None:
        yield from plain_faults(invocation.row, body)
        return
    verdict = judge_claude(invocation.request, ledger)
    if not verdict.ok:
        yield _passed(invocation, verdict)


def _render(invocation: Invocation, ledger: Ledger, step: Step, digest: str, prompts: Prompts) -> Rendered:
    answer = minted(invocation.request, ledger, step, digest, prompts)
    return invoke(answer) if invocation.invoked else converse(answer, invocation.row)


def _reject(invocation: Invocation) -> Verdict:
    """The refusal of the last reasoning block."""
    if invocation.row is not None:
        return refuse(NO_REASONING, "rejected as scripted")
    return _passed(invocation, rejected(invocation.request))


def _passed(invocation: Invocation, verdict: Verdict) -> Verdict:
    return passed_on(verdict) if invocation.invoked else wrapped(verdict)


BEDROCK = Provider(
    # One place; the second name is for its InvokeModel clients. Clients append ``/model/...``.
    hosts={"bedrock": "", "bedrock-claude": ""},
    models=lambda host: models(),
    ledger=Ledger,
    read=_read,
    request=_request,
    judge=lambda invocation, ledger: first(_faults(invocation, ledger)),
    view=lambda invocation, ledger: view_of(invocation.request, ledger),
    render=_render,
    reject=_reject,
    broken=lambda message, code: exception(code, message),
    own=OWN,
)
