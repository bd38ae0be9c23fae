"""A set of logs as this checkout writes them, for the tests that read logs of earlier versions for good.

``python -m scripts.old_logs`` adds tests/old_logs/VERSION-COMMIT.tar.xz; ``PYTHONPATH=OTHER/src`` takes the code
of another checkout. Conversations in all nine dialects, by the library and through the gateway, in both databases.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import msgspec

import thinkback
from tests.conformance.moves import answered
from tests.old_logs import sets
from tests.old_logs.clients import FRONTS
from tests.old_logs.providers import ASKED, PLACES, Providers, behind
from tests.old_logs.sets import Conversation, Kept
from tests.stores.postgres_server import Server

RECORDINGS = {"full": FRONTS, "metadata": FRONTS[:1], "off": FRONTS[1:]}
"""What is kept of requests, and the fronts that then know of reasoning; where it is off, clients hold it."""
_DATABASE = "old logs"


def main() -> None:
    """Make the set of the code that is imported."""
    source = Path(thinkback.__file__).parent
    commit = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], cwd=source, capture_output=True, text=True, check=True
    )
    name = f"{thinkback.__version__}-{commit.stdout.strip()}"
    with tempfile.TemporaryDirectory() as place, Providers() as providers, behind(providers):
        make(Path(place), providers)
        to = sets.HERE / f"{name}{sets.ENDING}"
        sets.pack(Path(place) / "set", to)
    print(f"{to}: {to.stat().st_size} bytes, made by {source}")


def make(place: Path, providers: Providers) -> None:
    """A set in ``place/set``. It is copied before its conversations go on."""
    kept = place / "set"
    kept.mkdir()
    store, spool = place / "store", place / "spool"
    with Server() as server:
        url = server.make_database(_DATABASE)
        found = {
            "sqlite": [
                *held(providers, place, str(store), place / "none"),
                *talked(providers, str(place / "library.db")),
            ],
            "postgres": [*held(providers, place, url, spool, server), *talked(providers, url)],
        }
        shutil.copytree(store, kept / "store")
        shutil.copytree(spool, kept / "spool", ignore=shutil.ignore_patterns("*.lock"))
        shutil.copy(place / "library.db", kept)
        (kept / "postgres.sql").write_text(server.dump(_DATABASE))
        go_on(providers, place, str(store), place / "none", str(place / "library.db"), found["sqlite"])
        go_on(providers, place, url, spool, url, found["postgres"])
    (kept / sets.CONVERSATIONS).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=0))


def held(
    providers: Providers, place: Path, store: str, spool: Path, server: Server | None = None
) -> list[Conversation]:
    """Conversations through a gateway, up to a call that waits. The last one waits in the spool where there is one."""
    with sets.running(sets.gateway(place / "house", providers, store, spool)) as house:
        secrets = {mode: house.keys("create", mode, "--recording", mode).split()[-1] for mode in RECORDINGS}
        made = []
        for mode, front, dialect in _combinations():
            name = f"{front} to {dialect}, {mode}"
            user = "" if front == "gemini" else f"person of {name}"
            begun = Conversation(name, dialect, user, front, secrets[mode], mode != "off")
            made += _begun(providers, house, begun)
        if server is not None:
            server.crash()
            begun = Conversation("spooled", "openai-chat", "a person", "openai-chat", secrets["full"])
            made += _begun(providers, house, begun, away=True)
            house.kill()
            server.start()
    return made


def _combinations() -> Iterator[tuple[str, str, str]]:
    """(recording, front, dialect): each dialect from its own front, where it is one, and from another in turn."""
    for mode, fronts in RECORDINGS.items():
        turns = cycle(fronts)
        for place in PLACES:
            for front in dict.fromkeys((*(front for front in fronts if front == place.dialect), next(turns))):
                yield mode, front, place.dialect


def _begun(
    providers: Providers, house: sets.Gateway, conversation: Conversation, *, away: bool = False
) -> list[Conversation]:
    """The conversation, unless this code does not get that far with it."""
    providers.begin()
    client = conversation.client()
    key = f"the key of {conversation.name}"
    first = client.ask(house, ASKED[0].format(name=conversation.name), idempotency_key=key)
    # Nothing is recognised while the database is away.
    replies = [first] if away else [first, client.give(house), client.ask(house, ASKED[1])]
    for refused in (reply for reply in replies if reply.status != 200):
        print(f"left out: {conversation.name}: {refused.body.decode()}")
        return []
    conversation.asked = providers.seen
    if not away and ", off" not in conversation.name:
        conversation.kept = Kept(key, first.body.decode())
    return [conversation]


def talked(providers: Providers, log: str) -> list[Conversation]:
    """Sessions of the library, up to a call that waits; one that was worked on."""
    made = []
    with thinkback.open(log, tenant=sets.LIBRARY if "://" in log else "default") as store:
        for place in PLACES:
            conversation = Conversation(f"library, {place.dialect}", place.dialect, f"person of {place.dialect}")
            providers.begin()
            session = sets.session_of(store, providers, place, conversation.name)
            session.set("reasoning.effort", "high")
            session.chat(ASKED[0].format(name=conversation.name), **sets.options_of(conversation))
            answered(session)
            session.chat(ASKED[1], **sets.options_of(conversation))
            conversation.asked = providers.seen
            made.append(conversation)
        providers.begin()
        _work(sets.session_of(store, providers, PLACES[0], "worked on"), store)
    return made


def _work(session: thinkback.Session, store: thinkback.session.store.SessionStore) -> None:
    """Branches, a fork, a merge, marks, an edit, a checkpoint, and words that were taken out."""
    session.chat("What is 7 times 8? " + "Think well. " * 200)
    session.branches.branch("aside", switch=True)
    session.chat("The number of my card is 4711.")
    session.branches.switch("main")
    session.reasoning("Thought by hand.", tags=["hand"])
    session.annotate(session.commit("A note that stays.").hash, thinkback.Priority.PINNED, reason="it is a law")
    session.branches.fork("a fork").chat("And times 3?")
    session.branches.merge("aside")
    session.chat("Go on.")
    session.compaction.run("deterministic", tail=2)
    session.chat("And now?")
    store.search("card")
    said = next(commit for commit in session.log() if commit.kind == "user" and b"4711" in commit.payload)
    store.care.redact(said.hash, "4711", reason="a number of a card")


def go_on(
    providers: Providers, place: Path, store: str, spool: Path, log: str, conversations: list[Conversation]
) -> None:
    """How the code that made the set goes on with it is what others have to do."""
    with sets.running(sets.gateway(place / "house", providers, store, spool)) as house:
        for conversation in conversations:
            providers.begin(conversation.asked)
            if conversation.front:
                copy = msgspec.structs.replace(conversation, messages=list(conversation.messages))
                conversation.then = sets.go_on(providers, house, copy)
    with thinkback.open(log, tenant=sets.LIBRARY if "://" in log else "default") as opened:
        for conversation, at in zip([each for each in conversations if not each.front], PLACES, strict=True):
            providers.begin(conversation.asked)
            session = sets.session_of(opened, providers, at, conversation.name)
            conversation.then = sets.go_on_with(providers, session, conversation)
    for conversation in conversations:
        assert {200} == {seen.status for seen in conversation.then.seen}, conversation.name


if __name__ == "__main__":
    main()
