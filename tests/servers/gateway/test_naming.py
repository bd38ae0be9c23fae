"""What a key may not name: other models than its own, and things in the account that all keys share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.drive.servers import Asked, Server, head
from tests.servers.gateway.harness.engines import chat
from tests.servers.gateway.harness.running import Running, running
from thinkback.proxy.request_view import named
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.stores.gateway_state import open_gateway_state
from thinkback.wire import registry

WIRED = "thinkback.servers.gateway.running.wiring:open_behind"
PATHS = {
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{}:generateContent",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}


class House(NamedTuple):
    """A gateway with keys before an upstream that counts its requests."""

    gateway: Running
    upstream: Server
    keys: Mapping[str, str]


def answer(server: Server, asked: Asked) -> list[bytes]:
    """The same to everybody."""
    said = chat("Hm.")
    return [head(length=len(said), kind="application/json") + said]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One upstream refuses what its account keeps, another one, ``own``, passes it."""
    place = tmp_path_factory.mktemp("naming")
    office = open_gateway_state(place / "store")
    keys: dict[str, str] = {}
    for name, terms in {"free": Terms(), "limited": Terms(models=("up/*", "own/*"))}.items():
        keys[name], row = new_key(terms, 1, name=name)
        office.keys.create(row)
    office.close()
    with Server(answer) as upstream, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UP_KEY", "sk-upstream")
        patch.setenv("NO_PROXY", "*")
        base = {"endpoint": "openai-chat", "base_url": upstream.url, "key_env": "UP_KEY"}
        changes: dict[str, Any] = {
            "upstreams": {"up": base, "own": {**base, "stored": "pass"}},
            "store": {"path": str(place / "store")},
        }
        with running(WIRED, **changes) as gateway:
            yield House(gateway, upstream, keys)


def body(front: str, **more: Any) -> dict[str, Any]:
    """A request of one question."""
    match front:
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], **more}
        case "openai-responses":
            return {"model": "up/m", "input": "Hi.", **more}
        case _:
            return {"model": "up/m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}], **more}


OTHERS = [
    ("openai-chat", {"models": ["anthropic/claude-opus-5-5"]}, "models"),
    ("openai-chat", {"route": "fallback"}, "route"),
    ("openai-chat", {"preset": "mine"}, "preset"),
    ("openai-chat", {"plugins": [{"id": "auto-router", "model": "x"}]}, "plugins"),
    ("openai-chat", {"fallbacks": ["gpt-5.5"]}, "fallbacks"),
    ("openai-responses", {"prompt": {"id": "pmpt_1"}}, "prompt"),
    ("openai-responses", {"tools": [{"type": "image_generation", "model": "gpt-image-2"}]}, "tools[0].model"),
    (
        "openai-responses",
        {
            "input": [
                {"type": "additional_tools", "role": "developer", "tools": [{"type": "image_generation", "model": "x"}]}
            ]
        },
        "input[0].tools",
    ),
    ("anthropic", {"fallbacks": ["claude-opus-4-6"]}, "fallbacks"),
    ("anthropic", {"tools": [{"type": "advisor", "name": "a", "model": "claude-opus-5-5"}]}, "tools[0].model"),
    ("gemini", {"model": "models/gemini-3-pro"}, "model"),
]


@pytest.mark.parametrize(("front", "more", "field"), OTHERS)
def test_a_key_limited_to_models_names_no_others(house: House, front: str, more: dict[str, Any], field: str) -> None:
    """By whatever field: it is named, and nothing goes upstream."""
    before = len(house.upstream.asked)
    path = PATHS[front].format("up/m")
    reply = house.gateway.ask(path, body(front, **more), key=house.keys["limited"])

    assert (403, before) == (reply.status, len(house.upstream.asked))
    assert f"{field} may lead to others" in reply.json["error"]["message"]


STORED = [
    (
        "openai-responses",
        {
            "input": [
                {"type": "image_generation_call", "id": "ig_1", "result": None},
                {"role": "user", "content": "Why?"},
            ]
        },
        "input[0]",
    ),
    ("openai-responses", {"conversation": "conv_1"}, "conversation"),
    ("openai-responses", {"prompt": {"id": "pmpt_1"}}, "prompt"),
    (
        "openai-responses",
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
        "input[0].content[0].file_id",
    ),
    (
        "openai-responses",
        {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]},
        "tools[0].vector_store_ids",
    ),
    ("openai-responses", {"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}, "tools[0].container"),
    (
        "openai-responses",
        {"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"]}}]},
        "tools[0].container.file_ids",
    ),
    (
        "openai-chat",
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]},
        "messages[0].content[0].file.file_id",
    ),
    (
        "openai-responses",
        {"input": [{"type": "computer_call_output", "call_id": "c", "output": {"file_id": "file-1"}}]},
        "input[0].output.file_id",
    ),
    (
        "openai-responses",
        {"input": [{"type": "tool_search_output", "tools": [{"type": "mcp", "tunnel_id": "tunnel_1"}]}]},
        "input[0].tools[0].tunnel_id",
    ),
    ("openai-responses", {"tools": [{"type": "mcp", "connector_id": "connector_gmail"}]}, "tools[0].connector_id"),
    (
        "openai-chat",
        {"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}, {"role": "user", "content": "Again."}]},
        "messages[0].audio.id",
    ),
    ("openai-chat", {"audio": {"format": "wav", "voice": {"id": "voice_1"}}}, "audio.voice.id"),
    (
        "openai-chat",
        {"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "ms://file-1"}}]}]},
        "messages[0].content[0].video_url.url",
    ),
    (
        "openai-chat",
        {"messages": [{"role": "system", "content": "fileid://file-1,fileid://file-2"}, {"role": "user"}]},
        "messages[0].content",
    ),
    (
        "openai-chat",
        {"messages": [{"role": "system", "content": [{"type": "text", "text": "fileid://file-1"}]}, {"role": "user"}]},
        "messages[0].content[0].text",
    ),
    (
        "openai-chat",
        {"extra_body": {"google": {"cached_content": "cachedContents/1"}}},
        "extra_body.google.cached_content",
    ),
    ("openai-chat", {"google": {"cachedContent": "cachedContents/1"}}, "google.cachedContent"),
    ("openai-chat", {"cached_content": "cachedContents/1"}, "cached_content"),
    ("anthropic", {"container": "container_1"}, "container"),
    (
        "anthropic",
        {
            "messages": [
                {"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "file_1"}}]}
            ]
        },
        "messages[0].content[0].source.file_id",
    ),
    ("gemini", {"cachedContent": "cachedContents/1"}, "cachedContent"),
    (
        "gemini",
        {"contents": [{"role": "user", "parts": [{"fileData": {"fileUri": "files/1"}}]}]},
        "contents[0].parts[0].fileData.fileUri",
    ),
    (
        "gemini",
        {"system_instruction": {"parts": [{"file_data": {"file_uri": "files/1"}}]}},
        "system_instruction.parts[0].file_data.file_uri",
    ),
    (
        "gemini",
        {"tools": [{"retrieval": {"vertex_rag_store": {"rag_resources": [{"rag_corpus": "projects/1/c"}]}}}]},
        "tools[0].retrieval.vertex_rag_store.rag_resources[0].rag_corpus",
    ),
    (
        "gemini",
        {"tools": [{"googleMaps": {"authConfig": {"apiKeyConfig": {"apiKeySecret": "projects/1/secrets/2"}}}}]},
        "tools[0].googleMaps.authConfig.apiKeyConfig.apiKeySecret",
    ),
]


@pytest.mark.parametrize(("front", "more", "field"), STORED)
def test_a_key_names_nothing_that_the_shared_account_keeps(
    house: House, front: str, more: dict[str, Any], field: str
) -> None:
    """The reason is told with the field, in the client's dialect, and nothing goes upstream."""
    before = len(house.upstream.asked)
    path = PATHS[front].format("up/m")
    reply = house.gateway.ask(path, body(front, **more), key=house.keys["free"])

    assert (403, before) == (reply.status, len(house.upstream.asked))
    assert reply.json["error"]["message"].startswith(f"{field} stands for something in the upstream's account")


def test_an_upstream_may_be_said_to_pass_such_names(house: House) -> None:
    """Where its account is everybody's."""
    content = [{"type": "file", "file": {"file_id": "file-1"}}]
    asked = body("openai-chat", model="own/m", messages=[{"role": "user", "content": content}])

    assert 200 == house.gateway.ask(PATHS["openai-chat"], asked, key=house.keys["free"]).status
    assert b"file-1" in house.upstream.asked[-1].body


def test_without_keys_there_is_one_tenant(house: House, tmp_path: Path) -> None:
    """Who is let in without a key on loopback names what is theirs."""
    base = {"endpoint": "openai-chat", "base_url": house.upstream.url, "key_env": "UP_KEY"}
    content = [{"type": "file", "file": {"file_id": "file-2"}}]
    asked = body("openai-chat", messages=[{"role": "user", "content": content}], models=["other"])
    changes: dict[str, Any] = {"upstreams": {"up": base}, "store": {"path": str(tmp_path)}}
    with running(WIRED, server={"no_auth": True}, **changes) as gateway:
        assert 200 == gateway.ask(PATHS["openai-chat"], asked, key=None).status

    assert b"file-2" in house.upstream.asked[-1].body


FREE = [
    ("openai-responses", {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}),
    (
        "openai-responses",
        {"tools": [{"type": "function", "name": "f", "parameters": {"properties": {"file_id": {"type": "string"}}}}]},
    ),
    (
        "openai-responses",
        {
            "input": [
                {
                    "type": "additional_tools",
                    "tools": [{"type": "function", "parameters": {"properties": {"file_id": {}, "model": {}}}}],
                },
                {"type": "image_generation_call", "id": "ig_1", "result": "AA=="},
                {"type": "message", "role": "assistant", "model": "m", "content": []},
            ]
        },
    ),
    ("openai-responses", {"background": False, "conversation": None}),
    ("openai-responses", {"tools": [{"type": "mcp", "server_url": "https://mcp.example.org"}]}),
    (
        "openai-chat",
        {
            "audio": {"voice": "alloy", "format": "wav"},
            "extra_body": {"google": {"thinking_config": {"thinking_budget": 0}}},
            "messages": [
                {"role": "assistant", "audio": None, "tool_calls": [{"id": "call_1", "function": {"arguments": "{}"}}]},
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
                },
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
                {"role": "user", "content": "git://example.org is what, and fileid://file-1?"},
            ],
        },
    ),
    ("anthropic", {"thread": {"type": "create"}}),
    ("anthropic", {"diagnostics": {"previous_message_id": "msg_1"}}),
    ("openai-responses", {"prompt_cache_options": {"comparison_response_id": "resp_1"}}),
    ("gemini", {"contents": [{"parts": [{"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}}]}]}),
    ("gemini", {"contents": [{"parts": [{"functionCall": {"name": "f", "args": {"fileUri": "files/1"}}}]}]}),
    (
        "anthropic",
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": {"file_id": "mine"}}]}]},
    ),
]


@pytest.mark.parametrize(("front", "more"), FREE)
def test_names_of_the_clients_own_are_none_of_these(front: str, more: dict[str, Any]) -> None:
    """Arguments and schemas of tools, what is empty, what the web has, and what a request is only compared with."""
    fields = registry.front(front).body
    assert [] == [*named(fields.stored, more), *named(fields.models, more)]
    assert json.dumps(more)


TWICE = [
    ("anthropic", b'"messages": [{"role": "user", "content": "Hi.", "content": "Ho."}]', "messages[0].content"),
    (
        "openai-chat",
        b'"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f", "file_id" : ""}}]}]',
        "messages[0].content[0].file.file_id",
    ),
    ("openai-responses", b'"input": "Hi.", "model": "up/n"', "model"),
    ("gemini", b'"contents": [{"parts": [{"text": "Hi.", "t\\u0065xt": "Ho."}]}]', "contents[0].parts[0].text"),
]


@pytest.mark.parametrize(("front", "more", "field"), TWICE)
def test_a_key_that_stands_twice_hides_nothing(house: House, front: str, more: bytes, field: str) -> None:
    """Who reads the first of the two reads another request: it is refused in the client's dialect, with the place."""
    before = len(house.upstream.asked)
    path = PATHS[front].format("up/m")
    reply = house.gateway.ask(path, b'{"model": "up/m", "max_tokens": 9, %b}' % more, key=house.keys["free"])

    assert (400, before) == (reply.status, len(house.upstream.asked))
    assert f"{field} stands twice in the request" == reply.json["error"]["message"]


def test_upstreams_without_a_key_are_counted_where_balancers_look(house: House, tmp_path: Path) -> None:
    """Requests for the others are served: it stays ready; names are for who has a key."""
    base = {"endpoint": "openai-chat", "base_url": house.upstream.url}
    ways = {"up": {**base, "key_env": "UP_KEY"}, "bare": {**base, "key_env": "KEY_THAT_NOBODY_SET"}}
    with running(WIRED, upstreams=ways, store={"path": str(tmp_path)}) as gateway:
        told = gateway.ask("/readyz", key=None)

    assert (200, "1 of 2 have no key") == (told.status, told.json["parts"]["upstreams"])
    assert "upstreams" not in house.gateway.ask("/readyz", key=None).json["parts"]
