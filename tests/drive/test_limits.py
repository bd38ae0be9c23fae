"""How many tokens a request may have, asked of servers that tell: a real HTTP server in the place of each."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import thinkback
from thinkback.drive.limits import limit_told
from thinkback.model.rule import LimitQuery
from thinkback.rules import load_rulebook

MODEL = "a-model"
CHAT = {
    "id": "1",
    "object": "chat.completion",
    "model": MODEL,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}],
}
VLLM = {"object": "list", "data": [{"id": "another", "max_model_len": 7}, {"id": MODEL, "max_model_len": 40960}]}
LM_STUDIO = {"data": [{"id": MODEL, "state": "loaded", "max_context_length": 131072, "loaded_context_length": 4096}]}
NOT_LOADED = {"data": [{"id": MODEL, "state": "not-loaded", "max_context_length": 131072}]}
OPENROUTER = {"data": [{"id": MODEL, "context_length": 262144, "top_provider": {"context_length": 131072}}]}
PS = {"models": [{"name": f"{MODEL}:latest", "model": MODEL, "context_length": 8192}]}
SHOW = {"parameters": 'num_ctx    16384\nstop    "<|im_end|>"\nodd', "model_info": {"qwen3.context_length": 40960}}
BARE = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960}}
PROPS = {"default_generation_settings": {"n_ctx": 32768, "params": {}}, "total_slots": 1}


@contextmanager
def server(answers: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """A server that answers by path, and every POST of a conversation; its address, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            assert MODEL == body["model"]
            self.answer()

        def answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            found = CHAT if self.path.endswith("/chat/completions") else answers.get(self.path)
            data = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as stand:
        thread = threading.Thread(target=stand.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{stand.server_port}", asked
        finally:
            stand.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("endpoint", "base", "answers", "limit"),
    [
        ("vllm", "/v1", {"/v1/models": VLLM}, 40960),
        ("lmstudio", "/v1", {"/api/v0/models": LM_STUDIO}, 4096),
        ("lmstudio", "/v1", {"/api/v0/models": NOT_LOADED}, 131072),
        ("ollama", "/v1", {"/api/ps": PS, "/api/show": SHOW}, 8192),
        ("ollama", "/v1", {"/api/ps": {"models": []}, "/api/show": SHOW}, 16384),
        ("ollama", "/v1", {"/api/show": BARE}, 40960),
        ("llamacpp", "/v1", {"/props": PROPS}, 32768),
        ("llamacpp", "/behind/a/proxy/v1", {"/behind/a/proxy/props": PROPS}, 32768),
        ("openrouter", "/api/v1", {"/api/v1/models": OPENROUTER}, 131072),
        ("vllm", "/v1", {}, 0),
        ("vllm", "/v1", {"/v1/models": b"<html>"}, 0),
        ("vllm", "/v1", {"/v1/models": [MODEL]}, 0),
        ("vllm", "/v1", {"/v1/models": {"data": [{"id": MODEL, "max_model_len": -1}]}}, 0),
        ("vllm", "/v1", {"/v1/models": {"data": [{"id": MODEL, "max_model_len": 10**18}]}}, 0),
        ("vllm", "/v1", {"/v1/models": b" " * 9_000_000}, 0),
    ],
)
def test_a_server_that_tells_its_limit_is_asked_once(
    endpoint: str, base: str, answers: dict[str, Any], limit: int
) -> None:
    """Before the first request; with the day where it is shown. One that does not tell is no trouble."""
    with server(answers) as (address, asked), thinkback.open(":memory:") as opened:
        session = opened.session(
            "talk", endpoint=endpoint, base_url=f"{address}{base}", model=MODEL, api_key="k-1234567"
        )
        assert "Yes." == session.chat("Are you there?").text
        before = [line for line in asked if "chat/completions" not in line]
        assert "Yes." == session.chat("Still?").text
        counts = session.usage.context()
        assert (limit, bool(limit)) == (counts.limit, bool(counts.limit_asked))
        assert before == [line for line in asked if "chat/completions" not in line]
        assert before
        assert ("asked of" in session.target.info.source) == bool(limit)


def test_a_limit_that_a_person_sets_is_not_asked_for() -> None:
    """Nor is one of an endpoint that does not tell, or before a request goes there."""
    with server({"/v1/models": VLLM}) as (address, asked), thinkback.open(":memory:") as opened:
        session = opened.session("talk", endpoint="vllm", base_url=f"{address}/v1", model=MODEL)
        assert 0 == session.usage.context().limit
        assert [] == asked
        session.set("context.limit", 5000)
        session.chat("Are you there?")
        assert (5000, "") == (session.usage.context().limit, session.usage.context().limit_asked)
        other = opened.session("other", endpoint="deepseek", base_url=f"{address}/v1", model=MODEL, api_key="k-1234567")
        other.chat("Are you there?")
        assert ["POST /v1/chat/completions"] * 2 == asked


def test_every_query_has_a_source_and_only_these_servers_are_asked() -> None:
    """The path leads to the server that requests go to."""
    found = {place.id: place.limit_queries for place in load_rulebook().endpoints() if place.limit_queries}
    local = {"vllm", "lmstudio", "ollama", "ollama-native", "ollama-responses", "llamacpp"}
    assert {*local, "openrouter", "openrouter-responses"} == set(found)
    assert all(query.source and "://" not in query.path for queries in found.values() for query in queries)


def test_a_place_of_the_number_may_be_missing() -> None:
    """The first that has one counts."""
    query = LimitQuery("models", (("a", "b"), ("c",)), "us")
    assert [0, 0, 3, 4] == [limit_told(query, answer, "") for answer in (None, {"a": 1}, {"c": 3}, {"a": {"b": "4"}})]
