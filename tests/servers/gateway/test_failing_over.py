"""An upstream that fails is left for another one, and who looks sees it: client, log, measures, readiness."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.conftest import Inside
from tests.drive.servers import Asked, Server, head
from tests.servers.gateway.harness.house import House, Provider, wait_until

TEXT = """no_auth = true
[timeouts]
connect = 1
[upstreams.first]
base_url = "{first}/v1"
endpoint = "deepseek"
key_file = "{key}"
[models.m]
targets = [{{ upstream = "first", model = "deepseek-v4-pro" }}]
fallbacks = [{fallback}]
[models.rest]
targets = [{{ upstream = "deepseek", model = "deepseek-v4-flash" }}]
"""


class Refusing:
    """An upstream that answers a key with a status and a body, until it is shown another one."""

    def __init__(self, status: int, said: str) -> None:
        self.status, self.said = status, said
        self.keys: list[str] = []
        self._server = Server(self._answer)

    def __enter__(self) -> Refusing:
        self._server.__enter__()
        return self

    def __exit__(self, *why: object) -> None:
        self._server.__exit__(*why)

    @property
    def url(self) -> str:
        """Its address."""
        return self._server.url

    def _answer(self, server: Server, asked: Asked) -> Iterable[bytes]:
        key = asked.headers["authorization"].removeprefix("Bearer ")
        self.keys.append(key)
        if key == "sk-good":
            chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]}
            yield head() + b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(chunk).encode()
        else:
            said = json.dumps({"error": {"message": self.said, "type": "t", "code": "c"}}).encode()
            yield head(self.status, length=len(said), kind="application/json") + said


@pytest.fixture
def provider() -> Iterator[Provider]:
    """An upstream that answers."""
    with Provider() as running:
        yield running


def house_of(place: Path, provider: Provider, refusing: Refusing, *, alone: bool) -> House:
    """A gateway whose alias ``m`` leads to the refusing upstream, and unless ``alone`` behind it to the other."""
    key = place / "key"
    key.write_text("sk-bad")
    key.chmod(0o600)
    text = TEXT.format(first=refusing.url, key=key, fallback="" if alone else '"rest"')
    return House(place / "house", provider.url, str(place / "store"), text)


def counted(house: House, family: str) -> dict[str, float]:
    """The rows of a family, by their labels."""
    rows = re.findall(rf"^{family}\{{(.*)\}} (\S+)$", house.get("/metrics").body.decode(), re.MULTILINE)
    return {labels: float(value) for labels, value in rows}


BODY = {"model": "m", "messages": [{"role": "user", "content": "Why?"}], "stream": True}
BAD_KEYS = [(401, "bad key"), (402, "no money"), (400, "API key not valid. Please pass a valid API key.")]


@pytest.mark.parametrize(("status", "said"), [*BAD_KEYS, (503, "busy")])
def test_fail_over_is_seen(tmp_path: Path, provider: Provider, status: int, said: str) -> None:
    """Header, line and measures name who was left, for what, and who answered; a bad key is a part of readiness."""
    with ExitStack() as open_:
        refusing = open_.enter_context(Refusing(status, said))
        house = house_of(tmp_path, provider, refusing, alone=False)
        open_.callback(house.kill)
        reply = house.ask(BODY)
        again = house.ask(BODY)
        wait_until(lambda: len(house.events("request")) >= 2, "both are logged")
        line = house.events("request")[0]
        parts = json.loads(house.get("/readyz").body)["parts"]

        assert reply.is_acknowledged
        assert again.is_acknowledged
        assert "deepseek/deepseek-v4-flash" == reply.headers["thinkback-upstream"] == line["upstream"]
        left = reply.headers["thinkback-failed-over"]
        assert left.startswith(f"first/deepseek-v4-pro (status {status}")
        assert left == line["failed_over"]
        assert counted(house, "thinkback_failovers_total")['upstream="first"'] == len(refusing.keys)
        assert counted(house, "thinkback_upstream_attempts_total")[f'upstream="first",outcome="{status}"'] == len(
            refusing.keys
        )
        assert (status != 503) == ("upstream first" in parts)
        # a place whose key was refused is not asked first again, as long as another one is there
        assert (2 if status == 503 else 1) == len(refusing.keys)


@pytest.mark.parametrize(("status", "said"), BAD_KEYS)
def test_bad_key_of_the_only_upstream_is_the_gateways_fault_in_every_dialect(
    tmp_path: Path, provider: Provider, status: int, said: str
) -> None:
    """502 with a reason in the log, and no word that a client could take for its own key's fault."""
    with ExitStack() as open_:
        refusing = open_.enter_context(Refusing(status, said))
        house = house_of(tmp_path, provider, refusing, alone=True)
        open_.callback(house.kill)
        contents = {"contents": [{"role": "user", "parts": [{"text": "Why?"}]}]}
        replies = [
            house.ask(BODY),
            house.ask({**BODY, "max_tokens": 9}, "/v1/messages"),
            house.ask(contents, "/v1beta/models/m:generateContent"),
        ]
        wait_until(lambda: len(house.events("request")) >= 3, "all are logged")

        assert [502] * 3 == [reply.status for reply in replies]
        assert not any(re.search(rb"(?i)api.key|UNAUTHENTICATED|PERMISSION", reply.body) for reply in replies)
        reasons = {line["reason"] for line in house.events("request")}
        assert {f"the provider refused the gateway's key: {status} t c"} == reasons


def test_key_file_that_changed_is_read_again(tmp_path: Path, provider: Provider) -> None:
    """Without a signal; what was said of the old key is forgotten."""
    with ExitStack() as open_:
        refusing = open_.enter_context(Refusing(401, "bad key"))
        house = house_of(tmp_path, provider, refusing, alone=True)
        open_.callback(house.kill)
        assert 502 == house.ask(BODY).status
        draft = tmp_path / "draft"
        draft.write_text("sk-good")
        draft.chmod(0o600)
        os.replace(draft, tmp_path / "key")

        assert house.ask(BODY).is_acknowledged
        assert ["sk-bad", "sk-good"] == refusing.keys
        assert "upstream first" not in json.loads(house.get("/readyz").body)["parts"]


def test_phases_account_for_the_whole_time(tmp_path: Path, provider: Provider) -> None:
    """Waits between attempts and the attempts that were for nothing, too."""
    with ExitStack() as open_:
        refusing = open_.enter_context(Refusing(503, "busy"))
        house = house_of(tmp_path, provider, refusing, alone=True)
        open_.callback(house.kill)
        assert 503 == house.ask(BODY).status
        wait_until(lambda: house.events("request"), "it is logged")
        (line,) = house.events("request")
        phases = {name: value for name, value in line.items() if name.endswith("_seconds")}

        assert 3 == len(refusing.keys)
        assert {"wait_seconds", "retries_seconds"} <= set(phases)
        assert sum(phases.values()) == pytest.approx(line["seconds"], rel=0.25)


def test_silent_upstream_is_not_asked_again(tmp_path: Path, provider: Provider) -> None:
    """504 after the time for a first byte, once."""

    def silent(server: Server, asked: Asked) -> Iterable[bytes]:
        server.hold()
        return []

    with ExitStack() as open_:
        silence = open_.enter_context(Server(silent))
        text = "no_auth = true\n[timeouts]\nfirst_byte = 1\n"
        house = House(tmp_path / "house", f"{silence.url}/v1", str(tmp_path / "store"), text)
        open_.callback(house.kill)
        reply = house.talk(["Why?"])
        wait_until(lambda: house.events("request"), "it is logged")

        assert (504, 1) == (reply.status, len(silence.asked))
        assert house.events("request")[0]["seconds"] < 3


@pytest.mark.parametrize("key", ["sk-bad", "sk-good"])
def test_check_tells_of_a_key_that_the_provider_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    """Before anybody is served; one that is taken is not worth a line."""
    with Refusing(401, "bad key") as refusing:
        file = tmp_path / "key"
        file.write_text(key)
        file.chmod(0o600)
        config = tmp_path / "gateway.toml"
        upstream = f'[upstreams.first]\nbase_url = "{refusing.url}/v1"\nendpoint = "deepseek"\nkey_file = "{file}"\n'
        config.write_text(f'{upstream}[server]\nno_auth = true\nport = 0\n[store]\npath = "{tmp_path / "store"}"\n')
        done = Inside(tmp_path, monkeypatch, capsys)("gateway", "--check", "--config", str(config))

    assert [key] == refusing.keys
    assert (key == "sk-bad") == ("upstream first: the provider does not take its key (401)" in done.err)
    assert (1 if key == "sk-bad" else 0) == done.code
