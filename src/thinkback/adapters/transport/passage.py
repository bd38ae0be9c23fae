"""The way of one request through a program's own client, as a flow of what is to be done for it; no I/O here.

Promises: what the provider sent reaches the program, byte for byte, whatever fails on our side; the end of a response
follows its record; a failure is the provider's own, or the network's own exception. Must not: give the host's
credentials to another place.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import httpx2
import msgspec

from thinkback.adapters.transport import telling
from thinkback.adapters.transport.journal import Journal
from thinkback.adapters.transport.recognising import Api, Sender, sender_of
from thinkback.drive.auth import Keyring
from thinkback.drive.clock import now
from thinkback.drive.deadline import Deadline
from thinkback.drive.http import translate
from thinkback.errors import HeadMovedError, NetworkError, StoreError, WireError
from thinkback.model.blocks import Origin
from thinkback.model.target import Settings, Target, merge_headers
from thinkback.proxy import events, lookups
from thinkback.proxy.exchange import Exchange
from thinkback.proxy.headers import HOP_BY_HOP, passed_on
from thinkback.proxy.planning import Place, Refusals, place_of
from thinkback.proxy.report import Report
from thinkback.proxy.request_view import Client, Received
from thinkback.rules import Rulebook
from thinkback.session.config import today
from thinkback.session.endpoint_config import EndpointConfig
from thinkback.session.ids import new_id
from thinkback.settings import Layers
from thinkback.turn.credentials import Credentials
from thinkback.turn.plan import CHOSEN, Plan

if TYPE_CHECKING:
    from thinkback.observe.spans import Spans

MOST = 100_000
"""Messages that a request may have."""
# What a program says is its own context: nothing is summarised behind its back.
_OURS: Mapping[str, object] = {"compaction.auto": False}
# How a provider refuses a field of a request.
_REFUSED = (400, 422)
# About the bytes of the provider's connection, which are unpacked here.
_BODILY = HOP_BY_HOP | {"content-encoding"}
_AS_IT_IS = "it went as the program wrote it"


class Do(msgspec.Struct, frozen=True):
    """Call ``work``, which may wait for the log or for a token; answered by what it gives. One that ``stores`` is
    waited for, whoever leaves.
    """

    work: Callable[[], Any]
    stores: bool = False


class Post(msgspec.Struct, frozen=True):
    """Send ``request`` on the inner transport; answered by its response."""

    request: httpx2.Request


class Pull(msgspec.Struct, frozen=True):
    """Answered by the next unpacked piece of the body of the last response; by nothing at its end."""


class HangUp(msgspec.Struct, frozen=True):
    """Close the last response."""


class Nap(msgspec.Struct, frozen=True):
    """Go on after ``seconds``."""

    seconds: float


class Begin(msgspec.Struct, frozen=True):
    """Status, headers and extensions of the response to the program; its body follows."""

    status: int
    headers: list[tuple[bytes, bytes]]
    extensions: dict[str, Any]


class Out(msgspec.Struct, frozen=True):
    """A piece of the body."""

    data: bytes


class Pour(msgspec.Struct, frozen=True):
    """What ``take`` makes of each further piece of the body of the last response, up to one of which it makes ``None``;
    answered by that one, by nothing at the end of the body.
    """

    take: Callable[[bytes], bytes | None]


class Untouched(msgspec.Struct, frozen=True):
    """Send the program's own request, and give it the response as it is. The last step."""

    request: httpx2.Request


Need: TypeAlias = Do | Post | Pull | HangUp | Nap
"""What is performed, and answered."""
Given: TypeAlias = Begin | Out | Pour | Untouched
"""What the program gets."""
Flow: TypeAlias = Generator[Need | Given, Any, None]


_PULL = Pull()
_DONE = events.Answered()


class Gone(BaseException):
    """Thrown into a flow whose program reads no more: what came is recorded, nothing more is given."""


class _Bypassed(Exception):
    """We refuse or fail before anything was sent: the request goes as the program wrote it."""


class _Own:
    """The program puts its own credentials on; they are known to be blotted out of errors and of the log."""

    waits = False

    def __init__(self, sender: Sender) -> None:
        self._credentials = Credentials({}, secrets=sender.secrets, are_the_askers=True)

    def prepare(self) -> None:
        """There is nothing to find."""

    def __call__(self, url: str, headers: Mapping[str, str], body: object) -> Credentials:
        """None of ours."""
        return self._credentials


class Office:
    """What the requests of one transport share. ``route`` is (endpoint, model) where they go to another place."""

    def __init__(
        self, journal: Journal, rulebook: Rulebook, settings: Mapping[str, object], route: tuple[str, str] | None
    ) -> None:
        self.journal, self.rulebook, self.route = journal, rulebook, route
        self.instance = new_id()
        self._layers = Layers().replace("user", {**_OURS, **settings})
        self._effective: dict[str, Settings] = {}
        self._keyring = Keyring()
        self.refusals = Refusals()
        wanted = self._layers.effective({})
        self.spans = _spans(content=wanted.telemetry_content) if wanted.telemetry_spans else None

    def settings_at(self, target: Target) -> Settings:
        """The settings in force there."""
        name = target.endpoint.id
        found = self._effective.get(name)
        if found is None:
            found = self._effective[name] = self._layers.effective(target.endpoint.settings)
        return found

    def target(self, api: Api, model: str, sender: Sender) -> Target:
        """The place that the program asks itself."""
        found = self.rulebook.target(
            api.endpoint.id,
            model,
            on=today(),
            base_url=api.base_url,
            account=sender.account,
            account_known=sender.account_known,
        )
        if found.endpoint.dialect == api.front:
            return found
        return msgspec.structs.replace(found, endpoint=msgspec.structs.replace(found.endpoint, dialect=api.front))

    def own_route(self, api: Api, target: Target, sender: Sender) -> events.Route:
        """The way to it, on which nothing of ours is put."""
        place = EndpointConfig(target.model, api.endpoint.id, api.base_url)
        name = api.endpoint.id
        return events.Route(name, place, target, _Own(sender), {}, {}, {}, passes_stored=True)

    def other_route(self, model: str) -> events.Route:
        """The way to the place of ``route``. Raises ``NotFoundError``, ``CredentialError``."""
        assert self.route is not None
        endpoint, named = self.route
        place, book = EndpointConfig(named or model, endpoint, keyring=self._keyring), self.rulebook
        streaming, whole = (place.headers(book, streams=streams) for streams in (True, False))
        target, authenticator = place.target(book), place.authenticator(book)
        return events.Route(endpoint, place, target, authenticator, {}, streaming, whole)


def _spans(*, content: bool) -> Spans:
    from thinkback.observe.spans import Spans

    return Spans(content=content)


class Passage:
    """One request for the API ``api``; ``run`` is its flow."""

    def __init__(self, office: Office, api: Api, request: httpx2.Request) -> None:
        self._office, self._api, self._request = office, api, request
        # It goes to the place that the program asks itself.
        self._is_own = office.route is None
        self._body = request.content
        self._last = telling.listening()
        self._name = telling.named()
        self._attempt = hashlib.sha256(b"%b\n%b" % (str(request.url).encode(), self._body)).digest()
        self._exchange: Exchange
        self._route: events.Route
        self._plan: Plan | None = None
        self._headers: Mapping[str, str] = {}
        self._given_headers: Mapping[str, str] = {}
        # The last response of the provider, what of its bytes did not go on yet, and whether those that did are its.
        self._head: httpx2.Response | None = None
        self._waiting: list[bytes] = []
        self._is_its_own = True
        self._is_read = True
        self._network: Exception | None = None
        self._log_error: StoreError | None = None
        self._stored = 0
        # Of the log, when the conversation was looked for in it.
        self._epoch: int | None = None
        # The same, when what the exchange has of it now was looked up.
        self._known_epoch: int | None = None
        self._told: telling.Why | None = None
        # What went out last, and how many went before this exchange. What is not added because the provider refused it
        # by name, and what of that it refused in this request; why the program's own goes out in place of ours.
        self._out = request
        self._before = 0
        self._place: Place = ()
        self._lacks: list[str] = []
        self._refused: list[str] = []
        self._as_written = ""
        self.answered_at = 0.0

    # -- the flow --------------------------------------------------------------------------------------------------

    def run(self) -> Flow:
        """All that is to be done. Raises what the program is to see."""
        if self._office.spans is None:
            return self._run()
        from thinkback.adapters.transport.tracing import traced

        return traced(self._office.spans, self, self._run())

    def _run(self) -> Flow:
        journal = self._office.journal
        if journal.holds:
            yield Do(lambda: journal.settle_held(self._attempt), stores=True)
        try:
            yield from self._answered()
        except _Bypassed as error:
            self._tell(telling.Why(False, str(error)))
            yield Untouched(self._request)
        else:
            self._tell(self._why())

    def _answered(self) -> Flow:
        try:
            self._exchange = yield from self._prepared()
            command = self._exchange.begin()
        except StoreError:  # only where the program wants to know
            raise
        except Exception as error:  # a fault of ours is not the program's
            if not self._is_own:
                raise
            raise self._fault(error) from error
        event: events.Event
        pull: Pull | Pour = _PULL
        while command is not None:
            match command:
                case events.Receive():
                    try:
                        piece: bytes = yield pull
                    except Gone:
                        yield from self._interrupted()
                        raise
                    except BaseException as error:
                        event = yield from self._unperformed(error)
                    else:
                        self._received(piece)
                        event = events.Answered(piece)
                    command = self._on(event)
                case events.Write(data=data):
                    self._passed(data)
                    yield from self._given(Out(data))
                    command = self._on(_DONE)
                case events.Start() if self._is_own and not self._is_fine(command.status) and not self._is_ours:
                    yield from self._failed(command)
                    return
                case events.Start(status=status, headers=headers):
                    self._headers = headers
                    self._remember()
                    self._tell(self._why())
                    yield from self._given(self._begin(status, headers))
                    pull = Pour(self._take)
                    command = self._on(_DONE)
                case events.End():
                    yield from self._ended(command)
                    return
                case events.Send() if names := self._refused_before():
                    self._as_written = f"the provider refused {names[0]} in the last hour, so that {_AS_IT_IS}"
                    yield from self._answered()
                    return
                case _:
                    event = yield from self._performed(command)
                    command = self._on(event)

    def _prepared(self) -> Generator[Need, Any, Exchange]:
        request, api, office = self._request, self._api, self._office
        raw = request.headers.raw
        headers = passed_on(raw)
        self._given_headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}
        sender = sender_of(api, self._given_headers, request.url.query.decode())
        origin = None
        if office.route is None:
            target = office.target(api, api.model or _model(self._body), sender)
            self._route = office.own_route(api, target, sender)
            self._place = place_of(self._route)
            self._lacks = sorted({*office.refusals.names(self._place, now()), *self._refused} - {""})
            if self._lacks:
                from thinkback.adapters.transport.refusals import lacking

                self._route = office.own_route(api, lacking(target, self._lacks), sender)
            account, known = target.account, target.account_known
            origin = Origin(api.front, target.base_url, target.model, account=account, account_known=known)
        beginning = None
        if self._name:
            beginning = yield Do(lambda: office.journal.beginning(self._name))
        # Two providers may be asked the same, and the answers look alike: each has conversations of its own.
        place = api.base_url if office.route is None else "/".join(office.route)
        client = Client(place, "program", alone=True)
        received = Received(
            *(api.front, self._body, headers, client, api.model, api.streams),
            origin=origin,
            beginning=beginning,
            verbatim=self._is_own,
            as_written=self._as_written,
            conversation=self._name,
            instance=f"{office.instance} {os.getpid()}",  # a fork has its own conversations
        )
        return Exchange(
            *(received, None, MOST, now(), random.random()),
            degraded=False,
            rests=office.journal.rests,
            retries=0,
            refusals=office.refusals,
        )

    def _on(self, event: events.Event) -> events.Command | None:
        try:
            return self._exchange.on(event, now())
        except Exception as error:  # its client was answered before; what came is passed on
            if not isinstance(error, StoreError):
                self._fault(error)
            return None

    def _performed(self, command: events.Command) -> Generator[Need | Given, Any, events.Event]:
        """What became of ``command``."""
        try:
            return events.Answered((yield from self._perform(command)))
        except BaseException as error:
            return (yield from self._unperformed(error))

    def _unperformed(self, error: BaseException) -> Generator[Need, Any, events.Event]:
        """What the exchange is told of a failure; one that is nobody's is raised."""
        match error:
            case Gone():
                if self._head is not None and not self._is_read:
                    yield HangUp()
                return events.Interrupt("client_gone")
            case httpx2.TransportError():
                self._network = error
                return events.Failed(translate(error, "idle", Deadline(None)))
            case OSError() | httpx2.HTTPError() | httpx2.StreamError():  # an inner transport may raise its own
                self._network = error
                return events.Failed(NetworkError(f"the request failed: {error}", details={"phase": "network"}))
            case Exception():
                if isinstance(error, StoreError) and not isinstance(error, HeadMovedError):
                    self._log_error = self._log_error or error
                return events.Failed(error)
            case _:
                raise error

    def _perform(self, command: events.Command) -> Generator[Need | Given, Any, Any]:
        journal = self._office.journal
        match command:
            case events.LookUp() | events.ReadLines() | events.ReadHistory():
                return (yield Do(lambda: self._looked_up(command)))
            case events.OpenKept():
                return {}
            case events.Unstored() | events.FindErased():
                return frozenset()
            case events.FindErasure():
                return (yield Do(self._find_erasure))
            case events.KeepHistory(history=history, weight=weight):
                return journal.keep(history, weight)
            case events.Choose(model=model):
                if self._office.route is not None:
                    self._route = self._office.other_route(model)
                return self._route
            case events.Settle(route=route):
                return self._office.settings_at(route.target)
            case events.NextPlace() | events.Judged():
                return None
            case events.Send():
                return (yield from self._sent(command))
            case events.Receive():
                return (yield _PULL)  # nobody reads any more
            case events.Sleep(seconds=seconds):
                return (yield Nap(seconds))
            case events.Store():
                return (yield from self._stored_step(command))
            case events.Start() | events.Write() | events.End():
                return None  # nobody reads any more
            case _:
                assert_never(command)

    # -- the provider ----------------------------------------------------------------------------------------------

    def _sent(self, command: events.Send) -> Generator[Need, Any, events.Head]:
        self._plan, self._network = command.plan, None
        if command.plan.waits:
            yield Do(lambda: command.plan.authenticate(command.body))
        else:
            command.plan.authenticate(command.body)
        self._waiting.clear()
        self._is_its_own, self._is_read = True, False
        self._head = None
        self._out = self._written(command.plan, command.body)
        self._head = yield Post(self._out)
        self.answered_at = time.monotonic()
        return events.Head(self._head.status_code, dict(self._head.headers.items()))

    def _written(self, plan: Plan, body: bytes) -> httpx2.Request:
        """The request that goes out: the program's own where nothing is changed."""
        given = self._request
        if not self._is_own:
            headers = {"accept-encoding": given.headers.get("accept-encoding", "identity"), **plan.headers}
            return httpx2.Request("POST", plan.url, headers=headers, content=body, extensions=_limits(given))
        more = _added(self._given_headers, plan.headers) if not self._as_written else {}
        if body == self._body and not more:
            return given
        replaced = {b"content-length", b"transfer-encoding", *(name.lower().encode() for name in more)}
        raw = [each for each in given.headers.raw if each[0].lower() not in replaced]
        raw += [(name.encode(), value.encode()) for name, value in more.items()]
        raw.append((b"Content-Length", b"%d" % len(body)))
        # with a stream of its own it is not prepared again, which takes most of the time
        written = httpx2.Request(
            "POST", given.url, headers=raw, stream=httpx2.ByteStream(body), extensions=given.extensions
        )
        written.read()
        return written

    def _received(self, piece: bytes) -> None:
        if not piece:
            self._is_read = True
        elif self._is_own and self._is_its_own:
            self._waiting.append(piece)

    def _take(self, piece: bytes) -> bytes | None:
        """What the program gets for a piece of the body; ``None`` where the exchange has more to do with it."""
        try:
            data = self._exchange.take(piece)
        except BaseException:
            self._received(piece)
            raise
        if data is not None and (data is not piece or self._waiting):
            self._received(piece)
            if data:  # an event of many pieces is put together once, at its end
                self._passed(data)
        return data

    # -- the log ---------------------------------------------------------------------------------------------------

    def _looked_up(self, question: lookups.Asked) -> Any:
        journal = self._office.journal
        if self._epoch is None:
            self._epoch = self._known_epoch = journal.epoch()
        return journal.answer(question)

    def _find_erasure(self) -> bool:
        """Tell whether anything was erased since the conversation was looked up, or since this was asked."""
        known, self._known_epoch = self._known_epoch, self._office.journal.epoch()
        return None not in (known, self._known_epoch) and known != self._known_epoch

    def _stored_step(self, command: events.Store) -> Generator[Need, Any, bool]:
        entry = command.entry
        if entry is None:
            return True
        journal = self._office.journal
        brought = any(draft.kind == "response" for draft in command.step.drafts)
        if not brought and not self._stored and any(draft.kind == "turn_ended" for draft in command.step.drafts):
            yield Do(lambda: journal.hold(self._attempt, entry), stores=True)
            return True
        self._stored += 1
        return bool((yield Do(lambda: journal.record(entry, self._epoch), stores=True)))

    # -- the program -----------------------------------------------------------------------------------------------

    def _is_fine(self, status: int) -> bool:
        return status < 400 and not self._exchange.failure

    @property
    def _is_ours(self) -> bool:
        """Whether the program gets our refusal of reasoning that must not come, and not the provider's response."""
        return self._exchange.refuses_reasoning

    def _begin(self, status: int, ours: Mapping[str, str]) -> Begin:
        said = [(name.encode(), value.encode()) for name, value in ours.items()]
        if not self._is_own or self._head is None or self._is_ours:
            return Begin(status, said, {})
        theirs = [(name, value) for name, value in self._head.headers.raw if name.decode().lower() not in _BODILY]
        added = [each for each in said if each[0].startswith(b"thinkback-")]
        return Begin(self._head.status_code, theirs + added, dict(self._head.extensions))

    def _passed(self, data: bytes) -> None:
        """Note what went on of the provider's bytes."""
        if not (self._is_its_own and self._is_own):
            return
        waiting = self._waiting
        if len(waiting) == 1 and waiting[0] == data:
            waiting.clear()
            return
        whole = b"".join(waiting)
        waiting[:] = [whole[len(data) :]] if len(data) < len(whole) else []
        if not whole.startswith(data):
            self._is_its_own = False
            waiting.clear()

    def _given(self, item: Begin | Out) -> Flow:
        """Give a piece; whoever leaves here interrupts the exchange, which is then run to its end."""
        try:
            yield item
        except Gone:
            yield from self._interrupted()
            raise

    def _interrupted(self) -> Generator[Need | Given, Any, None]:
        """Record what came, and nothing else."""
        if not self._is_read:
            yield HangUp()
            self._is_read = True
        command = self._on(events.Interrupt("client_gone"))
        while command is not None:
            command = self._on((yield from self._performed(command)))
        self._tell(self._why(), is_late=True)

    def _ended(self, end: events.End) -> Flow:
        """The last piece, once everything is done: a program does not read what stands behind it."""
        failure = self._exchange.failure
        command = self._on(events.Answered())
        while command is not None:
            command = self._on((yield from self._performed(command)))
        if failure and self._log_error is not None:
            raise self._log_error
        if failure and self._is_own and self._is_its_own and not self._is_ours:
            yield from self._rest()
            return
        if not self._is_read:
            yield HangUp()
        self._tell(self._why())
        yield Out(end.data)

    def _failed(self, start: events.Start) -> Flow:
        """No response of ours: the provider's own, the network's own exception, or the request as it was."""
        said = b""
        command: events.Command | None = start
        while command is not None:
            if isinstance(command, events.End):
                said = command.data
            command = self._on((yield from self._performed(command)))
        if self._log_error is not None:
            raise self._log_error
        if self._network is not None:
            self._tell(self._why())
            raise self._network
        if self._head is None:
            raise _Bypassed(_words(said))
        if named := self._named_of_ours():
            yield from self._again(named)
            return
        yield self._begin(start.status, start.headers)
        yield from self._rest()

    def _again(self, named: str) -> Flow:
        """Once more without ``named``, and where that is not to be had, or was not enough, as the program wrote it."""
        from thinkback.adapters.transport.refusals import lacking

        target = self._route.target
        if self._refused or lacking(target, [named]) == target:
            self._as_written = f"the provider refused {named}, which was added, so that {_AS_IT_IS}"
        self._refused.append(named)
        self._before += self._exchange.report().attempts
        journal = self._office.journal
        yield Do(lambda: journal.settle_held(self._attempt), stores=True)
        yield from self._answered()

    def _remember(self) -> None:
        """The provider answered: for a while it is not sent again what it refused before. What made the whole request
        go as it was may be about this conversation, and is remembered for that alone.
        """
        for at, name in enumerate(self._refused, 1):
            alone = bool(self._as_written) and at == len(self._refused)
            place = (*self._place, self._exchange.session) if alone else self._place
            self._office.refusals.add(place, now(), name)

    def _refused_before(self) -> list[str]:
        """What made an earlier request of this conversation go as it was; nothing once some of this one is stored."""
        session = self._exchange.session
        if not session or self._as_written or self._stored or not self._is_own:
            return []
        return self._office.refusals.names((*self._place, session), now())

    def _named_of_ours(self) -> str:
        """What of a refusal's words is a name that we added to the program's request; nothing of it is recorded yet."""
        if self._as_written or self._stored or self.status not in _REFUSED or not self._is_read:
            return ""
        from thinkback.adapters.transport.refusals import added_names, named_in

        names = added_names(self._body, self._out.content, self._request.headers.raw, self._out.headers.raw)
        return named_in(names, b"".join(self._waiting))

    def _rest(self) -> Flow:
        """What the provider sent and the program has not got yet, up to its end."""
        self._tell(self._why() if self._stored else telling.Why(False, "the provider's response was not understood"))
        if self._waiting:
            yield Out(b"".join(self._waiting))
        while self._network is None and not self._is_read:
            piece: bytes = yield _PULL
            if piece:
                yield Out(piece)
            else:
                self._is_read = True
        if self._network is not None:
            raise self._network

    # -- what is said of it ----------------------------------------------------------------------------------------

    @property
    def front(self) -> str:
        """The dialect that the program speaks."""
        return self._api.front

    @property
    def report(self) -> Report:
        """What is known of it by now."""
        begun: Exchange | None = vars(self).get("_exchange")
        report = begun.report() if begun is not None else Report()
        return msgspec.structs.replace(report, attempts=self._before + report.attempts)

    @property
    def status(self) -> int:
        """The status of the provider's last response; 0 where there is none."""
        return self._head.status_code if self._head is not None else 0

    @property
    def streams(self) -> bool:
        """Whether its response is a stream."""
        return self._head is not None and "event-stream" in self._head.headers.get("content-type", "")

    def _fault(self, error: Exception) -> _Bypassed:
        reason = f"{type(error).__name__}: {error}"
        if not isinstance(error, WireError):
            self._office.journal.warn(f"a request could not be followed ({reason}); it goes as it was written")
        return _Bypassed(reason)

    def _tell(self, why: telling.Why, *, is_late: bool = False) -> None:
        telling.told(self._last, why, self._told if is_late else None)
        self._told = why

    def _why(self) -> telling.Why:
        report, headers = self.report, self._headers
        is_recorded = self._stored > 0 and not report.degraded
        return telling.Why(
            recorded=is_recorded,
            reason=(self._as_written or self._without()) if is_recorded else _reason(report),
            session=report.session,
            response=report.response,
            model=report.upstream or report.model,
            sent=report.attempts,
            reattached=report.reattach,
            left_out=headers.get("thinkback-left-out", ""),
            plan=self._plan if not self._as_written else None,
            chosen=self._plan.remarks.get(CHOSEN, "") if self._plan is not None and not self._as_written else "",
        )

    def _without(self) -> str:
        """What is not added here since the provider refused it."""
        return f"without {', '.join(self._lacks)}, which the provider refused" if self._lacks else ""


def _reason(report: Report) -> str:
    """Why a request is not recorded."""
    if report.degraded:
        return "the log could not be used"
    return f"it failed: {report.failure}" if report.failure else "it is not over"


class _Named(msgspec.Struct):
    """The model that a body names; all else is skipped."""

    model: str


def _model(body: bytes) -> str:
    """Raises ``WireError`` where there is none."""
    try:
        return msgspec.json.decode(body, type=_Named).model
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(f"the request is not JSON that names a model: {error}") from None


def _limits(request: httpx2.Request) -> dict[str, Any]:
    """The time-outs that the program set; all else is of its own place."""
    return {key: value for key, value in request.extensions.items() if key == "timeout"}


def _added(given: Mapping[str, str], planned: Mapping[str, str]) -> dict[str, str]:
    """The headers of a plan that the program's request does not say already."""
    more: dict[str, str] = {}
    for name, value in planned.items():
        old = given.get(name.lower())
        if old is None or not {word.strip() for word in value.split(",")} <= {word.strip() for word in old.split(",")}:
            more[name] = value if old is None else merge_headers({name: old}, {name: value})[name]
    return more


def _words(document: bytes) -> str:
    """What the body of an error says."""
    try:
        found = msgspec.json.decode(document)
        return str(found["error"]["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return "it was refused"
