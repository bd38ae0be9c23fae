"""Half a surrogate pair, which models do send, over HTTP: from every provider to every front, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.drive.servers import Asked, Server, head
from tests.servers.gateway.harness.answers import FRONTS, MODELS, answer, request
from tests.servers.gateway.harness.running import Running, running
from tests.servers.gateway.http.test_app import PATHS as ALL_PATHS

LONE = "a \udfff b"
PATHS = {front: path for path, front in reversed(ALL_PATHS)}


def played(server: Server, asked: Asked) -> Iterator[bytes]:
    """The provider that its address names."""
    path = asked.line.split()[1]
    streams = "streamGenerateContent" in path or json.loads(asked.body).get("stream") is True
    yield head(kind="text/event-stream" if streams else "application/json")
    yield answer(path.split("/")[1], [LONE], [LONE], streams)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway that keeps what is said, before a provider of each dialect."""
    place = tmp_path_factory.mktemp("halves")
    key = place / "key"
    key.write_text("sk-upstream")
    key.chmod(0o600)
    with Server(played) as server:
        names = {name: MODELS[name].partition("/")[0] for name in FRONTS}
        with running(
            "thinkback.servers.gateway.running.wiring:open_behind",
            server={"no_auth": True},
            store={"path": str(place / "store")},
            upstreams={
                endpoint: {"endpoint": endpoint, "base_url": f"{server.url}/{name}", "key_file": str(key)}
                for name, endpoint in names.items()
            },
        ) as made:
            yield made


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("upstream", FRONTS)
@pytest.mark.parametrize("front", FRONTS)
def test_half_a_pair_passes(house: Running, front: str, upstream: str, stream: bool) -> None:
    """In reasoning and in text it reaches the client as it came."""
    body, model, _ = request(front, upstream, stream)
    path = PATHS[front]
    if front == "gemini":
        path = f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    reply = house.ask(path, body, key=None)
    lines = reply.body.splitlines() if stream else [b"data:" + reply.body]
    told = [json.loads(line[5:]) for line in lines if line.startswith(b"data:") and not line.endswith(b"[DONE]")]

    assert 200 == reply.status, reply
    assert json.dumps(told, ensure_ascii=False).count(LONE) >= 2
