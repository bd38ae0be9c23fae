"""Recorded conversations asked again through an engine, whose upstream answers what was recorded."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import msgspec

from tests.gateway.carried import Carried, Json, Minted, carried, forgotten
from tests.gateway.engines import Kept, Logs, Plays, ask
from thinkback.cli.wire.recorded import body_of, target_of
from thinkback.gateway.config import Alias, Config, To, Upstream
from thinkback.gateway.engine import Engine
from thinkback.gateway.sealing import Sealer
from thinkback.rules import load_rulebook

BOOK = load_rulebook({})
_STREAMS = re.compile(r"stream", re.IGNORECASE)
_LAID = {"sse": "text/event-stream", "ndjson": "application/x-ndjson", "frames": "application/vnd.amazon.eventstream"}


class Asked(NamedTuple):
    """One recorded exchange asked again: what the client said, what it got, and what went upstream."""

    exchange: Json
    said: Json
    kept: Kept
    sent: Json | None
    minted: list[Carried]
    """The reasoning in the recorded request that came from earlier recorded responses."""
    given: list[Carried]
    """The same of what went upstream."""


def engine_of(settings: Json | None = None) -> tuple[Engine, Plays]:
    """An engine, and its upstream that answers what ``play`` was told last."""
    transport = Plays(lambda body: (500, "application/json", [b"{}"]))
    config = Config(settings=settings or {})
    return Engine(config, Logs(), Sealer(b"s" * 32), BOOK, lambda proxy: transport), transport  # type: ignore[arg-type]


def place(engine: Engine, exchange: Json, name: str) -> None:
    """Let requests for the model ``name`` go where those of ``exchange`` went."""
    target = target_of(exchange, BOOK)
    upstream = Upstream(target.endpoint.id, target.base_url, key_env="THINKBACK_TEST_KEY")
    alias = Alias((To("recorded", target.model),))
    engine.configure(msgspec.structs.replace(engine.config, upstreams={"recorded": upstream}, models={name: alias}))


def play(transport: Plays, exchange: Json) -> None:
    """Answer what was recorded."""
    response = exchange["response"]
    kind = response.get("content_type") or next((kind for key, kind in _LAID.items() if key in response), "")
    answer = response.get("status", 200), kind or "application/json", [body_of(response)]
    transport._answer = lambda body: answer


def ask_again(engine: Engine, transport: Plays, exchange: Json, earlier: Minted) -> Asked:
    """The recorded request without its reasoning, in its own dialect."""
    dialect = exchange["dialect"]
    recorded = exchange["request"]["body"]
    said = forgotten(dialect, recorded)
    name = "recorded" if dialect == "gemini" else str(said.get("model"))
    place(engine, exchange, name)
    play(transport, exchange)
    before = len(transport.sent)
    kept = ask(
        engine,
        dialect,
        said,
        model=name if dialect == "gemini" else "",
        streams=exchange["streaming"] if dialect == "gemini" else None,
    )
    sent = json.loads(transport.sent[before]) if len(transport.sent) > before else None
    return Asked(
        exchange, said, kept, sent, known(earlier, dialect, recorded), known(earlier, dialect, sent) if sent else []
    )


def known(earlier: Minted, dialect: str, body: Json) -> list[Carried]:
    """What ``body`` carries of earlier responses."""
    return [found for piece in carried(dialect, body) if (found := earlier.of(piece)) is not None]


def is_conversation(case: Json) -> bool:
    return len([one for one in case["exchanges"] if one["request"] is not None]) > 1
