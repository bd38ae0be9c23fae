"""The plan of the next request: a target, a compiled history and parameters, ready to be sent by anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple, SupportsBytes
from urllib.parse import quote

import msgspec

from thinkback.compile import fold, translate
from thinkback.compile.policy import Inputs, binds
from thinkback.log.lines import OpenCall, UnderWay
from thinkback.log.seal import head_of
from thinkback.model import canonical, custom_tools
from thinkback.model.blocks import Block, ToolCall
from thinkback.model.commits import RECIPE, Commit, Erased, Head, Message, Request, Tool, Tools, decode_payload
from thinkback.model.plan import Beginnings, Control, Counts, Writer
from thinkback.model.target import Basis, Decision, Settings, Target, merge, merge_headers, overlay, without
from thinkback.turn.controls import READABLE, Resolver
from thinkback.turn.credentials import CREDENTIALS, Authenticator, Credentials
from thinkback.turn.own_fields import writer_for
from thinkback.turn.reports import reported
from thinkback.wire.result import Report

# A shorter one is no secret, and blotting it out would garble every text.
_SHORTEST_SECRET = 6
# What of a model's name may stand in a path as it is; a slash (in Bedrock's ARNs) may not.
_IN_PATH = ":.@-_~"


UNASKED = "readable"
"""Under this name a record says why nothing readable was asked for in spite of the setting."""
AS_WRITTEN = "as_written"
CHOSEN = "chosen"
LEFT_OUT = "left_out"
REMARKS = frozenset({AS_WRITTEN, "cache", CHOSEN, LEFT_OUT, "lost", "not_found", UNASKED})
"""What a record may say besides: ``not_found`` lists the messages whose reasoning a gateway did not find, and why, and
``lost`` the ids of the responses among them that a model gave. ``chosen`` says how the conversation was chosen where
the log has several with equal words. ``left_out`` names what a program asked for and the place does not take.
``cache`` is the request that the prompt cache is judged
by, where that stands on another line. ``as_written`` is why it went in the client's words, with nothing added to them.
"""


class _Course:
    """What becomes of a plan: the headers and credentials it was sent with, and what was answered.

    Copies of the plan share it.
    """

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.credentials = Credentials({})
        self.report = Report()
        self.response = ""
        self.commits: Sequence[Commit] = ()


class Plan(msgspec.Struct, frozen=True, eq=False):
    """One request before it is sent, made by ``History.plan``. Nothing of it changes: ``msgspec.structs.replace`` gives
    another one. ``body`` may be iterated again and again; ``bytes(plan)`` joins it.

    ``url`` and ``headers`` are complete once it is authenticated (key included: it is in no ``repr`` and in no commit);
    ``base_headers`` are those without credentials of ours.
    ``decisions`` tell for each reasoning block what was done and why, ``report`` what the provider said it did with
    them; ``controls`` what became of each setting that was asked for. ``streams``: the response is asked for as one.
    ``added_headers`` go with what is sent; ``strict``: no reasoning must come back. ``held``: it may carry reasoning
    that is not in the log, so that it cannot be built a second time. ``wanted`` are the settings it was built by,
    ``settings`` what the record says of them, ``remarks`` what it says besides, by name.
    ``leaked_calls``: where the rule says that calls leak into reasoning, they are text, or calls that a person is asked
    about, or calls like any other for whoever runs them.
    ``budget`` says how much of ``reasoning.budget`` is spent, where that is worth saying.
    ``as_functions`` are the names of custom tools that are functions of one string in this request.
    ``sent_instead`` is the digest of the body that went in the place of this one, as its client wrote it: then the plan
    is for the response alone, and nothing was decided by it.
    """

    request: fold.Request
    writer: Writer
    end: bytes
    target: Target
    head: Head
    tools: tuple[Tool, ...]
    params: dict[str, Any]
    native: dict[str, Any]
    wanted: Settings
    controls: tuple[Control, ...]
    added_headers: dict[str, str]
    streams: bool
    strict: bool
    held: bool
    known_bases: Set[str]
    settings: dict[str, str] = {}
    base_headers: dict[str, str] = {}
    authenticator: Authenticator | None = None
    remarks: dict[str, str] = {}
    leaked_calls: Literal["text", "ask", "pass"] = "text"
    budget: str = ""
    as_functions: frozenset[str] = frozenset()
    sent_instead: str = ""
    course: _Course = msgspec.field(default_factory=_Course)

    @property
    def headers(self) -> dict[str, str]:
        """The request's headers, with credentials once it is authenticated."""
        return {**self.base_headers, **self.course.headers}

    @property
    def report(self) -> Report:
        """What the provider said it did with reasoning."""
        return self.course.report

    @property
    def url(self) -> str:
        """Where the body goes; a query of the base URL and one of the path stand together behind it."""
        endpoint = self.target.endpoint
        base, _, query = self.target.base_url.partition("?")
        path = endpoint.stream_path if self.streams and endpoint.stream_path else endpoint.path
        if "{model}" in path:
            path = path.replace("{model}", quote(self.target.model, safe=_IN_PATH))
        path, _, more = path.partition("?")
        queries = "&".join(part for part in (more, query, self.course.credentials.query) if part)
        return f"{base}{path}?{queries}" if queries else f"{base}{path}"

    @property
    def waits(self) -> bool:
        """Whether ``authenticate`` may use the network."""
        return self.authenticator is not None and self.authenticator.waits

    def authenticate(self, body: SupportsBytes) -> None:
        """Put the credentials on as they are now; ``body`` is what is signed. To be done again for each sending.

        Raises ``CredentialError``, and ``NetworkError`` where a token cannot be fetched.
        """
        if self.authenticator is not None:
            credentials = self.authenticator(self.url, self.headers, body)
            self.course.headers = {**self.headers, **credentials.headers}
            self.course.credentials = credentials

    @property
    def unasked(self) -> bool:
        """Whether readable reasoning is asked for that the client did not ask for."""
        return any(control.key == READABLE and control.state == "emitted" for control in self.controls)

    @property
    def dropped(self) -> tuple[Control, ...]:
        """The controls that were asked for and are not in the request as they were asked."""
        return tuple(control for control in self.controls if control.state != "emitted")

    @property
    def body(self) -> Iterator[bytes]:
        """The pieces of the request body."""
        return self.request.body(self.writer, self.end)

    def __bytes__(self) -> bytes:
        return b"".join(self.body)

    @property
    def decisions(self) -> list[Decision]:
        """What was done with each carrier and reasoning text, in order of the log."""
        if self.sent_instead:
            return []
        return reported(self.request.decisions(), self.report, self.course.commits)

    def answered(self, report: Report, commits: Sequence[Commit], response: str = "") -> None:
        """The response of that id came: what the provider reports belongs to the decisions."""
        self.course.report, self.course.commits, self.course.response = report, commits, response

    @property
    def answer(self) -> tuple[str, Sequence[Commit]]:
        """The id of the response, and the line that has it; empty until it came."""
        return self.course.response, self.course.commits

    @property
    def counts(self) -> Counts:
        """Estimated tokens, stored and sent."""
        return self.request.counts(self.tools)

    @property
    def messages(self) -> list[bytes]:
        """The messages as JSON, one by one; a dialect of alternating roles has only the whole body."""
        return list(self.request.fragments())

    @property
    def open_at(self) -> int:
        """The index of the first message of the turn under way."""
        return self.request.open_at

    @property
    def kept(self) -> str:
        """The id of the response up to which the provider keeps the conversation; empty where it does not."""
        return self.request.kept

    def without_key(self, text: str) -> str:
        """``text`` with the key of this request blotted out, wherever a server repeats it."""
        for secret in self.secrets():
            text = text.replace(secret, "***")
        return text

    def secrets(self) -> list[str]:
        """What must be shown nowhere of this request, the longest first: one may be part of another."""
        wanted = {self.target.endpoint.auth.header.lower(), *CREDENTIALS}
        sent = {value.rpartition(" ")[2] for name, value in self.headers.items() if name.lower() in wanted}
        found = sorted(sent | self.course.credentials.secrets, key=len, reverse=True)
        return [secret for secret in found if len(secret) >= _SHORTEST_SECRET]

    def beginnings(self) -> Beginnings:
        """Digests of every beginning of what is sent, each as a record has that of the whole."""
        found = self.request.beginnings(self.writer)
        return found._replace(carriers=frozenset({canonical.digest(b"")})) if self.sent_instead else found

    def record(self) -> Request:
        """The audit record of this request for the log."""
        digests = self.request.digests(self.writer, self.end, self.tools)
        target = self.target
        digest, basis = _basis(target)
        return Request(
            target={
                "endpoint": target.endpoint.id,
                "base_url": target.base_url,
                "dialect": target.endpoint.dialect,
                "model": target.model,
                "account": target.account,
                "account_known": "true" if target.account_known else "false",
                "on": target.on,
                "guessed": "true" if target.guessed else "false",
                **({"held": "true"} if self.held else {}),
                **self.remarks,
            },
            settings=self.settings,
            rules=(target.rule.id,),
            params=canonical.source(self.native),
            head=self.head.hash,
            system_digest=digests.system,
            tools_digest=digests.tools,
            messages_digest=digests.messages,
            carriers_digest="" if self.sent_instead else digests.carriers,
            sent_digest=self.sent_instead or digests.sent,
            basis_digest=digest,
            recipe=RECIPE,
            chain=self.request.chain if not self.sent_instead or self.request.chain is None else (0, ""),
            basis="" if digest in self.known_bases else basis,
            size=0 if self.sent_instead else self.request.size(self.tools),
        )

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What rich shows; the fields of a plan hold keys."""
        return [("endpoint", self.target.endpoint.id), ("model", self.target.model)]

    def __repr__(self) -> str:
        return f"<Plan {self.target.endpoint.id} {self.target.model}: {len(self.request)} messages>"


def remarked(plan: Plan, remarks: Mapping[str, str]) -> Plan:
    """``plan`` with what its record says besides."""
    why = remarks.get(UNASKED)
    more = (Control(READABLE, "true", "suppressed", why),) if why else ()
    return msgspec.structs.replace(plan, remarks=dict(remarks), controls=(*plan.controls, *more))


class _End(NamedTuple):
    """What stands behind the messages, what became of tools that the host does not have, and the names of custom tools
    that are functions there.
    """

    source: bytes
    controls: tuple[Control, ...]
    as_functions: frozenset[str]


def _end(
    request: fold.Request, target: Target, tools: Sequence[Tool], params: dict[str, Any], custom: bool | None
) -> _End:
    endpoint, rule = target.endpoint, target.rule
    writer = writer_for(endpoint)
    offered, foreign, functions, lost = translate.tools(tools, endpoint.dialect, writer, custom=custom)
    names = frozenset(custom_tools.as_function(tool).name for tool in functions)
    system = request.system
    if not system and rule.default_system and "instructions" not in params:
        system = [writer.top(Message(rule.default_system))]
    reason = f"only {{}} has it, and {endpoint.id} speaks {endpoint.dialect}"
    left = [Control("tools", tool.name, "unrepresentable", reason.format(tool.dialect)) for tool in foreign]
    reason = f"{endpoint.id} has no custom tools: it is a function of one string there, and its calls are read back"
    left += [Control("tools", name, "represented", reason) for name in sorted(names)]
    reason = f"{{}} is not sent, as {endpoint.dialect} has no name for it"
    left += [Control("tools", name, "represented", reason.format(member)) for name, member in lost]
    return _End(writer.end(target.model if endpoint.model_in_body else "", offered, system, params), tuple(left), names)


def _choosing(params: dict[str, Any], tools: Sequence[Tool], custom: bool | None) -> dict[str, Any]:
    """``params`` whose tool choice names custom tools as they are offered."""
    if custom is None or "tool_choice" not in params:
        return params
    found = map(custom_tools.definition_of, tools)
    names = {definition["name"] for definition in found if definition is not None}
    choice = custom_tools.choice_for(params["tool_choice"], names, takes_custom=custom)
    return params if not names else {**params, "tool_choice": choice}


def _basis(target: Target) -> tuple[str, str]:
    """Digest and text of the data that requests to ``target`` are built by: some KB, the same each time.

    What is kept holds the data, so that no other data can have its identities.
    """
    key = id(target.endpoint), id(target.rule), id(target.info)
    found = _BASES.get(key)
    if found is None:
        if len(_BASES) >= _MOST_BASES:
            _BASES.clear()
        basis = Basis(target.endpoint, target.rule, target.info)
        text = canonical.encode(basis)
        found = _BASES[key] = (basis, canonical.digest(text), text.decode())
    return found[1:]


_BASES: dict[tuple[int, int, int], tuple[Basis, str, str]] = {}
_MOST_BASES = 64


class History:
    """The commits of a session as values, folded for its target; grows with the log.

    Reasoning that is not to be kept is held here (``hold``) and stands in for what the log has, until ``release``.
    """

    def __init__(self, commits: Sequence[Commit] = (), epoch: int = 0) -> None:
        # That of the log before the commits were read.
        self.epoch = epoch
        self._held: dict[tuple[str, int], Block] = {}
        self._begin()
        self.take(commits)

    def _begin(self) -> None:
        self.commits: list[Commit] = []
        self.tools: tuple[Tool, ...] = ()
        # The commit that the tools are from, and edits of it.
        self._tools_from: set[str] = set()
        # Calls that were answered stay in the history, and some endpoints want tools offered beside them.
        self._called: dict[str, Tool] = {}
        self._answered = False
        self._offered_last: tuple[Tool, ...] = ()
        self._bases: set[str] = set()
        self._state: fold.State | None = None
        self._waiting: list[Commit] = []
        self._under_way = UnderWay()
        self._before: tuple[int, fold.State | None, list[Commit]] = (0, None, [])

    def renew(self, commits: Sequence[Commit], epoch: int) -> None:
        """Begin again with the same commits as the log has them now: something was erased since they were read.

        What is held of a response goes with its commit.
        """
        self.epoch = epoch
        erased = {(commit.response, commit.index) for commit in commits if isinstance(commit.value, Erased)}
        self._held = {place: block for place, block in self._held.items() if place not in erased}
        self._begin()
        self.take(commits)

    @property
    def head(self) -> Head:
        """After the last commit."""
        return head_of(self.commits)

    def take(self, commits: Sequence[Commit]) -> None:
        """More commits of the log, in order."""
        whole = [self._whole(commit) for commit in commits] if self._held else commits
        self.commits.extend(whole)
        self._waiting.extend(whole)
        for commit in commits:
            kind, value = commit.kind, commit.value
            if kind == "tool_result":
                self._answered = True
            elif kind == "tool_call" and isinstance(value, ToolCall):
                if value.name not in self._called:
                    self._called[value.name] = Tool(value.name, parameters='{"type":"object"}')
            elif kind == "tools" and isinstance(value, Tools):
                self._offer(commit, value)
            elif kind == "request" and isinstance(value, Request) and value.basis:
                self._bases.add(value.basis_digest)

    def _offer(self, commit: Commit, tools: Tools) -> None:
        """The tools from here on; an edit counts where it is of these."""
        if commit.edit and commit.edit not in self._tools_from:
            return
        self._tools_from = {*(self._tools_from if commit.edit else ()), commit.hash}
        self.tools = tools.tools
        self._offered_last = tools.tools or self._offered_last

    def hold(self, response: str, index: int, block: Block) -> None:
        """Keep ``block`` in memory for the commit of that place, which is to come."""
        if not self._held:
            self._before = (len(self.commits), self._state, list(self._waiting))
        self._held[response, index] = block

    def release(self) -> None:
        """Forget what was held: from here on the history is what the log has."""
        if not self._held:
            return
        at, self._state, waiting = self._before
        self.commits[at:] = [self._stored(commit) for commit in self.commits[at:]]
        self._waiting = [*waiting, *self.commits[at:]]
        self._held = {}
        self._under_way = UnderWay()

    def open_calls(self) -> list[OpenCall]:
        """Calls of the turn under way that have no result, in order. Reads only what came since it was asked last."""
        self._under_way.take(self.commits[self._under_way.count :])
        return self._under_way.calls()

    def _whole(self, commit: Commit) -> Commit:
        block = self._held.get((commit.response, commit.index))
        return commit if block is None else msgspec.structs.replace(commit, value=block)

    def _stored(self, commit: Commit) -> Commit:
        if (commit.response, commit.index) not in self._held:
            return commit
        return msgspec.structs.replace(commit, value=decode_payload(commit.payload))

    def plan(
        self,
        target: Target,
        settings: Settings,
        tools: Sequence[Tool] | None,
        params: dict[str, Any],
        *,
        recipe: int = RECIPE,
    ) -> Plan:
        """The next request. ``tools=None`` takes those of the log; ``recipe`` is that of records of requests.

        Raises ``ReplayRefused``.
        """
        writer = writer_for(target.endpoint)
        offered = self.tools if tools is None else tuple(tools)
        unwanted = not offered and target.rule.needs_tools and self._answered
        if unwanted:
            offered = self._offered_last or tuple(self._called.values())
        resolved = Resolver(settings, target, params, tools=bool(offered))
        custom = translate.takes_custom(target.endpoint, writer) if recipe > 1 else None
        inputs = Inputs(target, settings, resolved.params, bool(offered), recipe=recipe, custom=custom)
        if binds(target.rule, settings):
            inputs = msgspec.structs.replace(inputs, prefix=("", fold.tools_digest(offered)))
        self._state, request = fold.request(self._fold(inputs), writer)
        added = fold.added(self._state.policy, request)
        sent = merge(added.params, resolved.params)
        silenced = bool(offered) and target.rule.off_with_tools
        if request.off or silenced:  # whatever was asked for: the request would be refused otherwise
            # Another name for the same would contradict it.
            for path in (*target.rule.controls.aliases, *target.rule.thinking_only):
                sent = without(sent, path)
            sent = overlay(sent, target.rule.thinking_off)
        if unwanted:
            sent = merge(sent, target.rule.no_tools)
        sent = _choosing(sent, offered, custom)
        # Sorted, so that the same request comes out of data that was stored in between.
        sent = {key: sent[key] for key in sorted(sent)}
        controls = tuple(resolved.controls)
        if silenced:
            reason = f"{target.endpoint.id} refuses tools together with reasoning for {target.model}"
            controls += (Control("reasoning.enabled", "true", "suppressed", reason),)
        strict = settings.strict or target.endpoint.strict
        said = merge_headers(resolved.headers, added.headers)
        ended = _end(request, target, offered, sent, custom)
        return Plan(
            request=request,
            writer=writer,
            end=ended.source,
            target=target,
            head=self.head,
            tools=offered,
            params=sent,
            native=dict(params),
            wanted=settings,
            controls=ended.controls + controls,
            as_functions=ended.as_functions,
            added_headers=said if strict else merge_headers(target.rule.headers, said),
            streams=bool(sent.get("stream")),
            strict=strict,
            held=bool(self._held),
            known_bases=self._bases,
        )

    def _fold(self, inputs: Inputs) -> fold.State:
        writer = writer_for(inputs.target.endpoint)
        state = self._state
        if state is None or state.inputs != inputs:
            state = fold.fold(inputs, self.commits, writer)
        elif self._waiting:
            state = fold.extend(state, self._waiting, writer)
        self._waiting = []
        self._state = state
        return state
