"""The persona of Bedrock's runtime: Converse for all its models, InvokeModel for Claude, whole and streamed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from ..anthropic.judge import judge as judge_claude
from ..anthropic.ledger import Ledger
from ..anthropic.persona import body_of, minted, organisation, parsed, rejected
from ..anthropic.request import Caller, Request
from ..anthropic.view import view_of
from ..credentials import accepted, bearer
from ..persona import Asked, Rendered, View
from ..prompts import Prompts
from ..script import Step
from ..transport import Incoming
from ..verdict import Verdict
from .eventstream import exception
from .plain import NO_REASONING, judge_plain, thinks
from .profiles import CONVERSE, INVOKE, PLAIN, models, plain_for, pretended, profile_for
from .refusals import passed_on, refuse, unknown_model, wrapped
from .render import converse, invoke
from .sigv4 import CREDENTIALS, KEY, UNKNOWN_KEY, Credential, Fault, verify
from .structure import malformed
from .translate import betas_of, messages_body

API_KEY = "bedrock-api-key-referee"
"""A bearer key of the same account as ``KEY``."""
_PATH = re.compile(r"/model/(?P<model>[^/]+)/(?P<call>converse|converse-stream|invoke|invoke-with-response-stream)")


class Bedrock:
    """Bedrock's runtime endpoint. ``bedrock-claude`` is the same place under the name of its InvokeModel clients."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._prompts = Prompts()

    @property
    def hosts(self) -> Sequence[str]:
        """Its two names."""
        return ("bedrock", "bedrock-claude")

    def base_path(self, host: str) -> str:
        """Nothing: clients append ``/model/…``."""
        return ""

    def models(self, host: str) -> Sequence[str]:
        """All rows; InvokeModel has Claude only."""
        return models()

    def read(self, host: str, path: str, incoming: Incoming) -> Asked | Verdict | None:
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

    def judge(self, asked: Asked) -> Verdict:
        """The verdict of the service, then of the model's own server."""
        profile, row = profile_for(asked.model), plain_for(asked.model)
        if _invoked(asked):
            return unknown_model(asked.model) if profile is None else self._judge_invoked(asked)
        if profile is None and row is None:
            return unknown_model(asked.model)
        fault = malformed(asked.body)
        if fault is not None:
            return fault
        if row is not None:
            return judge_plain(row, asked.body)
        request = request_of(asked)
        verdict = judge_claude(request.profile, request.body, request.caller, self.ledger)
        return verdict if verdict.ok else wrapped(verdict)

    def view(self, asked: Asked) -> View:
        """The messages, with the thoughts that the model gets to read."""
        return view_of(request_of(asked), self.ledger)

    def render(self, asked: Asked, step: Step, digest: str) -> Rendered:
        """The answer, whole and as an event stream."""
        answer = minted(request_of(asked), step, digest, self.ledger, self._prompts)
        return invoke(answer) if _invoked(asked) else converse(answer, plain_for(asked.model))

    def reject(self, asked: Asked) -> Verdict:
        """The refusal of the last reasoning block."""
        if plain_for(asked.model) is not None:
            return refuse(NO_REASONING, "rejected as scripted")
        verdict = rejected(request_of(asked))
        return passed_on(verdict) if _invoked(asked) else wrapped(verdict)

    def broken(self, message: str, code: str) -> bytes:
        """An exception message."""
        return exception(code, message)

    def reset(self) -> None:
        """Forget mints and prompts."""
        self.ledger, self._prompts = Ledger(), Prompts()

    def _judge_invoked(self, asked: Asked) -> Verdict:
        if asked.body.get("anthropic_version") != INVOKE.version:
            return refuse("anthropic_version: Field required", "missing anthropic_version")
        for name in ("model", "stream"):
            if name in asked.body:
                return refuse(f"{name}: Extra inputs are not permitted", f"unexpected {name}")
        request = request_of(asked)
        verdict = judge_claude(request.profile, request.body, request.caller, self.ledger)
        return verdict if verdict.ok else passed_on(verdict)


def _invoked(asked: Asked) -> bool:
    return "/invoke" in asked.path


def request_of(asked: Asked) -> Request:
    """The request in the Messages format, whatever format it came in."""
    account = _account(asked)
    row = plain_for(asked.model)
    if row is not None:
        return Request(pretended(row, thinks(row, asked.body)), messages_body(asked.body), Caller(PLAIN, account))
    profile = profile_for(asked.model)
    assert profile is not None
    if _invoked(asked):
        return Request(profile, body_of(INVOKE, asked.body), Caller(INVOKE, account, betas_of(asked.body)))
    betas = betas_of(asked.body.get("additionalModelRequestFields"))
    return Request(profile, messages_body(asked.body), Caller(CONVERSE, account, betas))


def _account(asked: Asked) -> str:
    """The AWS account of a key."""
    key = bearer(asked.headers)
    if key:
        return KEY.account if key.partition(".")[0] == API_KEY else organisation(key)
    return _signer(asked).account


def _signer(asked: Asked) -> Credential:
    name = asked.headers["authorization"].partition("Credential=")[2].partition("/")[0]
    return CREDENTIALS[name]
