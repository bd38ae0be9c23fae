"""Sets of logs as earlier versions wrote them: packed, opened, and the conversations in them gone on with.

A set is a directory: ``conversations.json`` has what clients and providers know, ``store`` is a gateway's directory,
``library.db`` a log of the library's, ``postgres.sql`` both of them in a PostgreSQL, ``spool`` what waits for it.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

import thinkback
from tests.conformance.moves import Place, answered
from tests.old_logs.clients import Client
from tests.old_logs.providers import ASKED, HOSTS, KEY, PLACES, TOOLS, Json, Providers, Seen
from tests.servers.gateway.harness.house import House
from thinkback.session.session import Session

HERE = Path(__file__).parent
ENDING = ".tar.xz"
CONVERSATIONS = "conversations.json"
DATABASES = ("sqlite", "postgres")
LIBRARY = "library"
"""The tenant of the library's sessions in PostgreSQL."""
TEN_YEARS = 87_600
"""The longest that answers and sealed responses may be kept, in hours."""
H = TypeVar("H", bound=House)
_USERS: dict[str, Any] = {
    "openai-chat": lambda user: {"user": user},
    "openai-responses": lambda user: {"safety_identifier": user},
    "anthropic": lambda user: {"metadata": {"user_id": user}},
}


class Next(NamedTuple):
    """How a conversation went on: what the providers got, and what the gateway said of each request."""

    seen: list[Seen]
    reattached: list[str]


class Kept(NamedTuple):
    """The answer to a request with an idempotency key."""

    key: str
    body: str


class Conversation(msgspec.Struct):
    """What is known of a conversation outside of the log: ``front`` is empty for a session of the library."""

    name: str
    dialect: str
    user: str
    front: str = ""
    secret: str = ""
    forgets: bool = True
    messages: list[Json] = []
    asked: list[Seen] = []
    then: Next = Next([], [])
    kept: Kept | None = None

    def client(self) -> Client:
        """The client of the gateway that has it."""
        return Client(self.front, self.dialect, self.secret, self.user, self.forgets, self.messages)


Conversations = dict[str, list[Conversation]]
"""By the database that they are in."""


class Gateway(House):
    """A gateway whose configuration is given whole."""

    def configure(self, text: str) -> None:
        self.config.write_text(text)


def gateway(place: Path, providers: Providers, store: str, spool: Path) -> Gateway:
    """A gateway before the providers, each dialect under its name, which requests summaries for every client as the
    code of the first sets did.
    """
    kind = "url" if "://" in store else "path"
    parts = [
        "[server]\nport = 0\n",
        f'[store]\n{kind} = {json.dumps(store)}\ndegraded = "pass"\nspool = {json.dumps(str(spool))}\n',
        '[secrets]\ncurrent = "env:SECRET"\n[logs]\nformat = "json"\n[routing]\nbreaker_failures = 1000000\n',
        f"[recording]\nidempotency_for = {TEN_YEARS}\ncarriers_for = {TEN_YEARS}\n",
    ]
    for place_ in PLACES:
        parts.append(
            f"[upstreams.{place_.endpoint}]\nendpoint = {json.dumps(place_.endpoint)}\n"
            f'base_url = {json.dumps(providers.at(place_.host))}\nkey_env = "UP"\n'
            f"[models.{json.dumps(place_.dialect)}]\n"
            f"targets = [{{ upstream = {json.dumps(place_.endpoint)}, model = {json.dumps(place_.model)} }}]\n"
            'settings = { reasoning.effort = "high", reasoning.display = "auto" }\n'
        )
    return Gateway(place, "", store, "".join(parts))


def session_of(store: thinkback.session.store.SessionStore, providers: Providers, place: Place, name: str) -> Session:
    """A session of the library's at one of the providers."""
    address = providers.at(HOSTS[place.dialect])
    return store.session(name, endpoint=place.endpoint, model=place.model, base_url=address, api_key=KEY)


def options_of(conversation: Conversation) -> dict[str, Any]:
    """The options of its calls."""
    named = _USERS.get(conversation.dialect)
    return {"tools": TOOLS, "params": named(conversation.user) if named else {}}


def go_on(providers: Providers, house: House, conversation: Conversation) -> Next:
    """Go on with a conversation through the gateway: with results, with a question, with results."""
    client = conversation.client()
    told = []
    for send in (client.give, lambda house: client.ask(house, ASKED[2]), client.give):
        reply = send(house)
        told.append(reply.headers.get("thinkback-reattach", ""))
        if reply.status != 200:
            told.append(reply.body.decode())
            break
    return Next(providers.seen, told)


def go_on_with(providers: Providers, session: Session, conversation: Conversation) -> Next:
    """The same with a session of the library."""
    answered(session)
    session.chat(ASKED[2], **options_of(conversation))
    answered(session)
    return Next(providers.seen, [])


def pack(place: Path, to: Path) -> None:
    """Write a set."""
    with tarfile.open(to, "w:xz", preset=9) as tar:
        for path in sorted(path for path in place.rglob("*") if path.is_file()):
            info = tarfile.TarInfo(str(path.relative_to(place)))
            info.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(info, file)


def unpack(name: str, place: Path) -> None:
    """Lay a set out in a directory."""
    with tarfile.open(HERE / f"{name}{ENDING}") as tar:
        tar.extractall(place, filter="data")


def names() -> list[str]:
    """The sets there are."""
    return sorted(path.name.removesuffix(ENDING) for path in HERE.glob(f"*{ENDING}"))


def conversations(name: str) -> Conversations:
    """What is in a set."""
    with tarfile.open(HERE / f"{name}{ENDING}") as tar:
        found = tar.extractfile(CONVERSATIONS) or io.BytesIO()
        return msgspec.json.decode(found.read(), type=Conversations)


@contextmanager
def running(house: H) -> Iterator[H]:
    """It is ended in order, if it was not killed."""
    try:
        yield house
        assert house.process.poll() is not None or house.stop() == 0
    finally:
        if house.process.poll() is None:
            house.kill()
