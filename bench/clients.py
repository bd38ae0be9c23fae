"""Ingest against the clients that people use: the same bytes over the same kind of transport, from first piece to last.

Both sides get an httpx2 client that answers from memory in pieces of 16 KiB. thinkback's side is that client and the
dialect's reader: deltas, then blocks. A client that is not installed is said so, and is no failure.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

from bench.dialects import stream_of
from bench.measure import Figure, Group, interleaved, spread
from bench.streams import Provider, Stream
from thinkback.model.blocks import Origin
from thinkback.wire.registry import dialect as dialect_of

ROOT = Path(__file__).parent.parent
URL = "https://api.example.org"
_ASKED: list[Any] = [{"role": "user", "content": "Why?"}]
# A peer's way to read a stream, from its package and an httpx2 client.
_Stream = Callable[[Any, httpx2.Client], Callable[[], None]]


def _drain(events: Any) -> None:
    for _ in events:
        pass


def _openai_chat(openai: Any, http: httpx2.Client) -> Callable[[], None]:
    client = openai.OpenAI(api_key="none", base_url=URL, http_client=http, max_retries=0)
    return lambda: _drain(client.chat.completions.create(model="m", messages=_ASKED, stream=True))


def _openai_responses(openai: Any, http: httpx2.Client) -> Callable[[], None]:
    client = openai.OpenAI(api_key="none", base_url=URL, http_client=http, max_retries=0)
    return lambda: _drain(client.responses.create(model="m", input="Why?", stream=True))


def _anthropic_raw(anthropic: Any, http: httpx2.Client) -> Callable[[], None]:
    client = anthropic.Anthropic(api_key="none", base_url=URL, http_client=http, max_retries=0)
    return lambda: _drain(client.messages.create(model="m", messages=_ASKED, max_tokens=9, stream=True))


def _anthropic_accumulating(anthropic: Any, http: httpx2.Client) -> Callable[[], None]:
    client = anthropic.Anthropic(api_key="none", base_url=URL, http_client=http, max_retries=0)

    def run() -> None:
        with client.messages.stream(model="m", messages=_ASKED, max_tokens=9) as events:
            _drain(events)
            events.get_final_message()

    return run


def _ours(dialect: str, http: httpx2.Client) -> Callable[[], None]:
    origin, make = Origin(dialect, URL, "m"), dialect_of(dialect).reader

    def run() -> None:
        reader = make(origin, "sse", None, "response")
        with http.stream("POST", URL) as response:
            for piece in response.iter_bytes():
                reader.feed(piece)
        reader.close()
        assert reader.result().response.complete

    return run


def _against(package: str, dialect: str, which: str, peer: _Stream, aim: int, quick: bool) -> Figure:
    name, aimed = f"clients.{package}.{which}", f">= {aim}x {package}'s {which} stream"
    if find_spec(package) is None:
        return Figure(name, None, "us/chunk", aim=aimed, note=f"{package} is not installed")
    given, module = stream_of(dialect, 1_000 if quick else 4_000), import_module(package)
    provider = Provider(given.pieces)
    http = httpx2.Client(transport=provider)
    cases = {"thinkback": _ours(dialect, http), "peer": peer(module, http)}
    samples = interleaved(
        {case: provider.since_first_piece(work) for case, work in cases.items()}, rounds=3 if quick else 9
    )
    ratio = samples.ratio("peer", "thinkback")
    return Figure(
        name,
        samples.median("thinkback") / given.chunks * 1e6,
        "us/chunk",
        None,
        {f"{package} {module.__version__}": ratio.value},
        aimed,
        ratio.value >= aim,
        ratio.noise,
        f"{given.chunks} chunks; {package} {samples.median('peer') / given.chunks * 1e6:.1f} us/chunk",
    )


def peers() -> Path:
    """The interpreter of the environment for peers that cannot live beside the others; ``make peers`` makes it."""
    return Path(os.environ.get("THINKBACK_PEERS") or ROOT / ".venv-peers/bin/python").absolute()


def _litellm(given: Stream, rounds: int) -> dict[str, Any]:
    script = Path(__file__).with_name("litellm_stream.py")
    command = [str(peers()), str(script), str(rounds)]
    ran = subprocess.run(command, input=given.body, stdout=subprocess.PIPE, cwd="/", check=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def _against_litellm(quick: bool) -> Figure:
    aim = 200
    name, aimed = "clients.litellm.chat", f">= {aim}x litellm's chat stream"
    if not peers().is_file():
        return Figure(name, None, "us/chunk", aim=aimed, note="litellm is not installed: make peers")
    given = stream_of("openai-chat", 1_000)
    provider = Provider(given.pieces)
    work = _ours("openai-chat", httpx2.Client(transport=provider))
    rounds = 3 if quick else 7
    before = interleaved({"thinkback": provider.since_first_piece(work)}, 3 * rounds)
    peer = _litellm(given, rounds)
    after = interleaved({"thinkback": provider.since_first_piece(work)}, 3 * rounds)
    ours = median([*before.seconds["thinkback"], *after.seconds["thinkback"]])
    ratio = median(peer["seconds"]) / ours
    return Figure(
        name,
        ours / given.chunks * 1e6,
        "us/chunk",
        None,
        {f"litellm {peer['version']}": ratio},
        aimed,
        ratio >= aim,
        spread(peer["seconds"]),
        f"{given.chunks} chunks; litellm {median(peer['seconds']) / given.chunks * 1e6:.0f} us/chunk, in a process and "
        "an environment of its own, run between two halves of thinkback's rounds",
    )


GROUP = Group(
    "clients",
    (
        partial(_against, "openai", "openai-chat", "chat", _openai_chat, 20),
        partial(_against, "openai", "openai-responses", "responses", _openai_responses, 20),
        partial(_against, "anthropic", "anthropic", "accumulating", _anthropic_accumulating, 15),
        partial(_against, "anthropic", "anthropic", "raw", _anthropic_raw, 5),
        _against_litellm,
    ),
)
