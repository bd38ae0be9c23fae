"""From what a caller says to what a request needs: place, headers, parameters, messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from thinkback.drive.http import Timeouts
from thinkback.errors import CorruptLogError, NotFoundError
from thinkback.model import canonical
from thinkback.model.blocks import ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Message, Request
from thinkback.model.target import Endpoint, ModelInfo, Rule, Target, merge
from thinkback.session import config
from thinkback.settings import restore
from thinkback.turn.dialects import dialect
from thinkback.turn.plan import History, Plan

OPTIONS = frozenset(
    {
        "tools",
        "system",
        "params",
        "response_format",
        "settings",
        "reasoning",
        "max_steps",
        "max_retries",
        "stream",
        "timeouts",
    }
)


class Rulebook(Protocol):
    """What this package needs of the rules."""

    def endpoint(self, name: str) -> Endpoint: ...

    def endpoint_for_url(self, base_url: str) -> Endpoint: ...

    def target(
        self,
        endpoint: str,
        model: str,
        *,
        base_url: str = "",
        on: str,
        account: str = "",
        account_known: bool = False,
    ) -> Target: ...


class Place(msgspec.Struct, frozen=True):
    """Where a session's requests go, and how.

    ``endpoint`` is a name of the catalogue, or empty where ``base_url`` alone says it. ``proxy`` and ``verify`` (a CA
    file, a context, or ``False``) override the environment; ``transport`` replaces our HTTP client altogether.
    """

    model: str
    endpoint: str = ""
    base_url: str = ""
    api_key: str | None = None
    headers_given: Mapping[str, str] = {}
    proxy: str | None = None
    verify: Any = True
    timeouts: Timeouts = Timeouts()
    transport: Any = None
    account: str = ""

    def changed(self, rulebook: Rulebook, **options: Any) -> Place:
        """This place with ``options`` changed; another endpoint forgets the base URL and key of the old one."""
        given = {key: value for key, value in options.items() if value is not None}
        if "headers" in given:
            given["headers_given"] = given.pop("headers")
        if "endpoint" in given and given["endpoint"] != self.endpoint:
            given = {"base_url": "", "api_key": None, "account": "", **given}
        place = msgspec.structs.replace(self, **given)
        place.resolved(rulebook)
        return place

    def resolved(self, rulebook: Rulebook) -> Endpoint:
        """The endpoint's data. Raises ``NotFoundError`` when neither name nor URL says where."""
        if self.endpoint:
            return rulebook.endpoint(self.endpoint)
        if self.base_url:
            return rulebook.endpoint_for_url(self.base_url)
        raise NotFoundError(
            "no endpoint was given", next_actions=("give endpoint= or base_url=; `thinkback endpoints` lists them",)
        )

    def target(self, rulebook: Rulebook) -> Target:
        """Endpoint, model, rule and account of the next request."""
        endpoint = self.resolved(rulebook)
        if not (self.base_url or endpoint.base_url):
            raise NotFoundError(f"{endpoint.id} has no fixed address", next_actions=("give base_url=",))
        if not self.model:
            raise NotFoundError("no model was given", next_actions=("give model=",))
        key = config.find_key(endpoint, self.api_key)
        account, known = (self.account, True) if self.account else config.account(endpoint, self.headers_given, key)
        return rulebook.target(
            endpoint.id,
            self.model,
            base_url=self.base_url,
            on=config.today(),
            account=account,
            account_known=known,
        )

    def endpoint_settings(self, rulebook: Rulebook) -> Mapping[str, Any]:
        """The endpoint's layer of the settings."""
        return self.resolved(rulebook).settings

    def headers(self, rulebook: Rulebook, *, with_key: bool, streams: bool) -> dict[str, str]:
        """Request headers. Without ``with_key`` a missing key is no error (a dry run needs none)."""
        endpoint = self.resolved(rulebook)
        key = config.find_key(endpoint, self.api_key)
        auth = config.auth_headers(endpoint, key) if with_key or key else {}
        accept = "text/event-stream" if streams else "application/json"
        fixed = {"Content-Type": "application/json", "Accept": accept, "User-Agent": "thinkback"}
        return {**fixed, **endpoint.headers, **auth, **self.headers_given}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse a misspelt option instead of ignoring it."""
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; options are {', '.join(sorted(OPTIONS))}")


def message(prompt: str | Sequence[Mapping[str, Any]]) -> Message:
    """A user message from text or from content parts of the dialect."""
    if isinstance(prompt, str):
        return Message(prompt)
    drafts = dialect("openai-chat").read_messages([{"role": "user", "content": list(prompt)}], str)
    value = drafts[0].value
    assert isinstance(value, Message)
    return msgspec.structs.replace(value, wire="")


def native_params(target: Target, options: Mapping[str, Any]) -> dict[str, Any]:
    """Native request fields: streaming, response format, then whatever the caller gave, which wins."""
    params: dict[str, Any] = {}
    if options.get("stream", True):
        params["stream"] = True
        if target.endpoint.stream_usage:
            params["stream_options"] = {"include_usage": True}
    if options.get("response_format") is not None:
        params["response_format"] = _response_format(options["response_format"])
    return merge(params, dict(options.get("params") or {}))


def _response_format(wanted: Any) -> Any:
    if isinstance(wanted, Mapping):
        return dict(wanted)
    schema = msgspec.json.schema(wanted, ref_template="#/$defs/{name}")
    name = getattr(wanted, "__name__", "answer")
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


def result_drafts(results: Mapping[str, str], commits: Sequence[Commit]) -> list[Draft]:
    """Results a caller gives for calls of the log. Raises ``NotFoundError`` for an id that no open call has."""
    calls: dict[str, tuple[ToolCall, str]] = {}
    for commit in commits:
        if isinstance(commit.value, ToolCall):
            calls[commit.value.id] = (commit.value, commit.response)
        elif isinstance(commit.value, ToolResult):
            calls.pop(commit.value.id, None)
    missing = [id for id in results if id not in calls]
    if missing:
        raise NotFoundError(
            f"no open call has the id {missing[0]!r}",
            next_actions=(f"open calls: {', '.join(calls) or 'none'}",),
        )
    return [
        Draft("tool_result", ToolResult(id, text, calls[id][0].name), calls[id][1]) for id, text in results.items()
    ]


def rebuild(commits: Sequence[Commit]) -> Plan:
    """The plan of the last request, folded again from its record.

    Raises ``CorruptLogError`` when the bytes are not those whose digest was stored.
    """
    at = next((at for at in range(len(commits) - 1, -1, -1) if commits[at].kind == "request"), None)
    if at is None:
        raise NotFoundError("no request was sent in this session", next_actions=("`--next` shows the next one",))
    record = commits[at].value
    assert isinstance(record, Request)
    plan = plan_of(record, commits)
    if plan.record().sent_digest != record.sent_digest:
        raise CorruptLogError(
            "the rebuilt request differs from the one that was sent",
            details={"request": commits[at].hash},
            next_actions=("run `thinkback fsck`; if it is clean, the program that sent it built it differently",),
        )
    return plan


def plan_of(record: Request, commits: Sequence[Commit]) -> Plan:
    """The plan that ``record`` describes, from the commits up to its head."""
    head = next((at for at, commit in enumerate(commits) if commit.hash == record.head), -1)
    place = record.target
    rule = canonical.decode(record.rule, Rule)
    endpoint = canonical.decode(place["endpoint_data"], Endpoint)
    target = Target(
        endpoint=endpoint,
        base_url=place["base_url"],
        model=place["model"],
        rule=rule,
        info=ModelInfo(place["model"]),
        account=place["account"],
        account_known=place["account_known"] == "true",
        guessed=place["guessed"] == "true",
        on=place["on"],
    )
    history = History(commits[: head + 1])
    settings = restore(record.settings)
    plan = history.plan(target, settings, None, canonical.decode(record.params))
    plan.settings = dict(record.settings)
    return plan


