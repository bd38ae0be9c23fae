"""Logs that a user would pick instead, in their own environment: ``python -m bench.peer_logs PEER FILE JOURNAL``.

Each line of standard input is a JSON array of [question, thought, answer]; the answer to it is one line, the seconds
that storing these responses took, one durable call each. What a peer needs first (its response object) is made before
the clock runs. ``JOURNAL`` is ``own`` (as the peer sets its connection up), ``full`` or ``normal`` (WAL, synchronous
so). Nothing of thinkback is imported here.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeAlias

Exchange: TypeAlias = tuple[str, str, str]
Sample: TypeAlias = Callable[[Sequence[Exchange]], float]

FULL = 2


def _set(db: Any, journal: str) -> None:
    """The journal and durability asked for; fails if the peer's own is less than FULL."""
    if journal == "own":
        assert db.execute("PRAGMA synchronous").fetchone()[0] >= FULL, "this peer is not durable as it comes"
    else:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        db.execute(f"PRAGMA synchronous = {journal.upper()}")


def openai_agents(path: str, journal: str) -> Sample:
    """``SQLiteSession.add_items`` with a reasoning item and a message, as its runner does after each response."""
    from agents import SQLiteSession

    class Session(SQLiteSession):  # type: ignore[misc]  # it has no types where thinkback is worked on
        @staticmethod
        def _configure_connection(conn: sqlite3.Connection) -> None:
            SQLiteSession._configure_connection(conn)
            _set(conn, journal)

    session = Session("bench", path)
    loop = asyncio.new_event_loop()

    async def store(given: Sequence[list[Any]]) -> float:
        start = perf_counter()
        for items in given:
            await session.add_items(items)
        return perf_counter() - start

    def sample(exchanges: Sequence[Exchange]) -> float:
        given = [
            [
                {"id": f"rs_{at}", "type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]},
                {
                    "id": f"msg_{at}",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": answer, "annotations": []}],
                },
            ]
            for at, (_, thought, answer) in enumerate(exchanges)
        ]
        return loop.run_until_complete(store(given))

    return sample


def llm(path: str, journal: str) -> Sample:
    """``log_to_db`` of a response without a conversation: with one, it hashes and looks up every earlier message."""
    import llm as package
    import sqlite_utils
    from llm.migrations import migrate
    from llm.parts import StreamEvent

    class Model(package.Model):  # type: ignore[misc]  # it has no types where thinkback is worked on
        model_id = "bench"
        can_stream = False
        exchange: Exchange = ("", "", "")

        def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[Any]:
            yield StreamEvent(type="reasoning", chunk=self.exchange[1])
            yield StreamEvent(type="text", chunk=self.exchange[2])

    db = sqlite_utils.Database(path)
    migrate(db)
    _set(db.conn, journal)
    model = Model()

    def answered(exchange: Exchange) -> Any:
        model.exchange = exchange
        response = model.prompt(exchange[0], stream=False)
        assert exchange[2] == response.text()
        return response

    def sample(exchanges: Sequence[Exchange]) -> float:
        responses = [answered(exchange) for exchange in exchanges]
        start = perf_counter()
        for response in responses:
            response.log_to_db(db)
        return perf_counter() - start

    return sample


def langchain(path: str, journal: str) -> Sample:
    """``SQLChatMessageHistory.add_messages`` with the model's message, its reasoning in ``additional_kwargs``."""
    from langchain_community.chat_message_histories import SQLChatMessageHistory
    from langchain_core.messages import AIMessage
    from sqlalchemy import create_engine, event

    engine = create_engine(f"sqlite:///{path}")
    event.listen(engine, "connect", lambda db, _: _set(db, journal))
    history = SQLChatMessageHistory("bench", connection=engine)

    def sample(exchanges: Sequence[Exchange]) -> float:
        given = [
            [AIMessage(answer, additional_kwargs={"reasoning_content": thought})] for _, thought, answer in exchanges
        ]
        start = perf_counter()
        for messages in given:
            history.add_messages(messages)
        return perf_counter() - start

    return sample


PEERS: dict[str, Callable[[str, str], Sample]] = {"openai-agents": openai_agents, "llm": llm, "langchain": langchain}


def main(peer: str, path: str, journal: str) -> None:
    """Say that it is ready, then answer each line."""
    sample = PEERS[peer](path, journal)
    print("ready", flush=True)
    for line in sys.stdin:
        print(sample(json.loads(line)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
