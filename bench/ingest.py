"""Stream ingest: a provider's bytes to deltas and blocks."""

from __future__ import annotations

import gc
import json
import tracemalloc

import httpx2
import msgspec
import openai

import thinkback
from bench.measure import Figure, Group, interleaved, timed
from bench.streams import MODEL, OverHttpx2, Provider, Stream, stream
from thinkback.model.blocks import Origin, Text, ThinkingBlock, ToolCall
from thinkback.wire.openai_chat.read import Reader

URL = "https://api.deepseek.com"
ORIGIN = Origin("openai-chat", URL, MODEL)


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int
    function: _Function
    id: str | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    index: int
    delta: _Delta
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int


class _Chunk(msgspec.Struct):
    id: str
    model: str
    choices: list[_Choice]
    usage: _Usage | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


def split_and_decode(body: bytes) -> None:
    """The limit: the whole body split into events at once, each decoded into a typed chunk, nothing done with it."""
    for event in body.split(b"\n\n"):
        data = event[6:]
        if data and data != b"[DONE]":
            _decode(data)


def split_and_json(body: bytes) -> None:
    """The same with the standard library's decoder: the baseline of most published figures."""
    for event in body.split(b"\n\n"):
        data = event[6:]
        if data and data != b"[DONE]":
            json.loads(data)


def read(pieces: list[bytes]) -> Reader:
    """The subject: pieces of 16 KiB through the dialect's reader, deltas and blocks out."""
    reader = Reader(ORIGIN, "sse", None, "response")
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    reader.result()
    return reader


def check(given: Stream) -> None:
    """The reader gives back what the model said; a fast wrong answer is no figure."""
    blocks = read(given.pieces).result().blocks
    thought = "".join(block.thought for block in blocks if isinstance(block, ThinkingBlock))
    text = "".join(block.text for block in blocks if isinstance(block, Text))
    arguments = "".join(block.arguments for block in blocks if isinstance(block, ToolCall))
    assert (given.reasoning, given.text, given.arguments) == (thought, text, arguments)


def _reader(quick: bool) -> Figure:
    given = stream(2_000 if quick else 8_000)
    check(given)
    pieces, body = given.pieces, given.body
    samples = interleaved(
        {
            "thinkback": timed(lambda: read(pieces)),
            "msgspec": timed(lambda: split_and_decode(body)),
            "json": timed(lambda: split_and_json(body)),
        },
        rounds=7 if quick else 25,
    )
    ratio, peer = samples.ratio("thinkback", "msgspec"), samples.ratio("json", "thinkback")
    return Figure(
        "ingest.reader",
        samples.median("thinkback") / given.chunks * 1e6,
        "us/chunk",
        ratio.value,
        {"split + json.loads": peer.value},
        "<= 3x split + typed msgspec decode",
        ratio.value <= 3,
        ratio.noise,
        f"{given.chunks} chunks of {len(body) // given.chunks} B, 16 KiB pieces, to deltas and blocks",
    )


def _stream(quick: bool) -> Figure:
    given = stream(1_000 if quick else 4_000)
    provider = Provider(given.pieces)
    client = httpx2.Client(transport=provider)
    peer = openai.OpenAI(api_key="none", base_url=URL, http_client=client, max_retries=0)
    asked: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "Why?"}]

    def ours() -> None:
        with thinkback.open(":memory:", rules={}, settings={}) as log:
            transport = OverHttpx2(client)
            session = log.session("bench", endpoint="deepseek", model=MODEL, api_key="none", transport=transport)
            running = session.stream("Why?")
            for _ in running:
                pass
            assert running.reply.steps

    def raw() -> None:
        for _ in peer.chat.completions.create(model=MODEL, messages=asked, stream=True):
            pass

    def accumulating() -> None:
        with peer.chat.completions.stream(model=MODEL, messages=asked) as events:
            for _ in events:
                pass

    works = {"thinkback": ours, "raw": raw, "accumulating": accumulating}
    cases = {name: provider.since_first_piece(work) for name, work in works.items()}
    samples = interleaved(cases, rounds=3 if quick else 9)
    ratio, whole = samples.ratio("raw", "thinkback"), samples.ratio("accumulating", "thinkback")
    return Figure(
        "ingest.stream",
        samples.median("thinkback") / given.chunks * 1e6,
        "us/chunk",
        None,
        {"openai create(stream=True)": ratio.value, "openai .stream(), accumulating": whole.value},
        ">= 20x openai's raw stream",
        ratio.value >= 20,
        ratio.noise,
        f"{given.chunks} chunks; session.stream, deltas yielded, blocks committed to a log in memory; "
        f"first piece to last block, one httpx2 client and transport under both; openai {openai.__version__}",
    )


def _peak(given: Stream) -> float:
    """Traced peak of a session's stream over what was there before, as a multiple of the text."""
    provider = Provider(given.pieces)
    transport = OverHttpx2(httpx2.Client(transport=provider))
    with thinkback.open(":memory:", rules={}, settings={}) as log:
        session = log.session("bench", endpoint="deepseek", model=MODEL, api_key="none", transport=transport)
        gc.collect()
        tracemalloc.start()
        for _ in session.stream("Why?"):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / given.text_bytes


def _memory(quick: bool) -> Figure:
    small, large = (stream(size) for size in ((1_000, 4_000) if quick else (2_000, 20_000)))
    _peak(small)  # imports, caches and compiled patterns are not the stream's
    first, second = _peak(small), _peak(large)
    return Figure(
        "ingest.memory",
        second,
        "x text",
        None,
        {},
        "O(text): peak / text grows by <= 1.25x",
        second <= 1.25 * first,
        None,
        f"traced peak / UTF-8 bytes of the text: {first:.1f} at {small.text_bytes / 1e3:.0f} kB, "
        f"{second:.1f} at {large.text_bytes / 1e3:.0f} kB of text ({len(large.body) / 1e6:.1f} MB of stream)",
    )


GROUP = Group("ingest", (_reader, _stream, _memory))
