"""Recorded conversations through the gateway, whose clients forget reasoning: it goes upstream all the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.exchanges import cases
from tests.servers.gateway.harness import saying
from tests.servers.gateway.harness.carried import Json, Minted, forgotten, is_peoples, messages_of
from tests.servers.gateway.harness.recordings import BOOK, Asked, Client, Echo, ask_again, engine_of, is_conversation
from thinkback.cli.wire.recorded import target_of
from thinkback.wire.registry import FRONTS

CONVERSATIONS = [case for _, case in cases() if is_conversation(case)]
IDS = [case["case"][:70] for case in CONVERSATIONS]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKBACK_TEST_KEY", "sk-of-the-gateway-alone")


def differences(asked: Asked) -> Iterator[str]:
    """In what the request that went upstream is not what it has to be."""
    dialect, sent = asked.exchange["dialect"], asked.sent
    yield from carries_otherwise(asked)
    if sent is None:
        return
    visible = forgotten(dialect, sent)
    if not saying.holds(saying.parameters(dialect, visible), saying.parameters(dialect, asked.said)):
        yield "parameters"
    if saying.peoples(dialect, visible) != saying.peoples(dialect, asked.said):
        yield "people"
    if saying.models(dialect, visible) != saying.models(dialect, asked.said):
        yield "model"


def carries_otherwise(asked: Asked) -> Iterator[str]:
    """In what it carries other reasoning than the recorded request did, or the same elsewhere."""
    if asked.sent is None:
        yield "refused"
    for piece in asked.minted:
        if piece not in asked.given:
            moved = any((piece.kind, piece.value) == (other.kind, other.value) for other in asked.given)
            yield f"{piece.kind} {'moved' if moved else 'lost'}"
    said, passed = Counter(p[1:] for p in asked.minted), Counter(p[1:] for p in asked.given)
    if any(number > max(1, said[piece]) for piece, number in passed.items()):
        yield "twice"


EXPLAINED = {
    "the prefix that the block is bound to was changed: the guard": {
        "anthropic--context-binding-changed-tools-with-drop-block--79bd4d#1": {"opaque lost", "text lost"},
    },
    "thoughts of Gemini without a signature are for people, and not demanded (rules of google.toml, omits)": {
        "google-ai-studio--google-model-thinking-part--2f2c45#1": {"text lost"},
        **{
            f"google-ai-studio--history-five-turn-chat-history-stress-preserves-context-and-tool--b345ce#{at}": {
                "text lost"
            }
            for at in range(1, 7)
        },
        "google-ai-studio--reasoning-roundtrip-streaming--487c51#1": {"text lost"},
        "google-ai-studio--reasoning-tool-roundtrip-nonstreaming--83b8bf#1": {"text lost"},
        "google-ai-studio--reasoning-tool-roundtrip-streaming--3d4790#1": {"text lost"},
    },
    "Copilot takes no reasoning items since 2026-05 (rule copilot-without-items); the recordings are older": {
        "github-copilot--reasoning-roundtrip-nonstreaming--c7bd8f#1": {"opaque lost"},
        "github-copilot--reasoning-roundtrip-streaming--cb0d1f#1": {"opaque lost"},
    },
    "a summary of xAI without an encrypted content carries nothing (rule xai, need_signature)": {
        "xai--reasoning-tool-roundtrip-streaming--759998#1": {"text lost"},
    },
    "the response did not complete, and is not given back": {
        **{
            f"google-vertex--multimodal-tool-return-matrix-direct-uploaded-file-video-google--75bc51#{at}": {
                "opaque lost"
            }
            for at in (1, 2, 3)
        },
        "groq--tool-use-failed-error-streaming--a5deaa#1": {"text lost"},
        "groq--tool-use-failed-error-streaming--a5deaa#2": {"text lost"},
        "groq--tool-use-failed-error-streaming-with-text--b156c2#1": {"text lost"},
    },
    "the recorded client had moved the value, or doubled it: it goes where the response had it": {
        "google-ai-studio--google-model-file-search-grounding-gemini-3-true--9e3263#1": {"opaque moved"},
        "google-vertex--function-calling-vertexai-gemini-2-5-flash-can-handle-multiple-t--a5f57e#1": {"opaque moved"},
    },
    "the recorded client told another model's reasoning as text: foreign reasoning": {
        "openai--anthropic-model-thinking-part-from-other-model--ab9979#1": {"model"},
        "openai--google-model-thinking-part-from-other-model--a4a3b4#1": {"text lost"},
        "anthropic--openai-responses-thinking-part-from-other-model--842aa6#1": {"model", "text lost"},
    },
    "the client put a call of its own beside those of the response, which is then not known": {
        f"google-ai-studio--cross-provider-capability-replay-google-gemini-3-flash-preview-o--598e5e#{at}": {
            "opaque lost"
        }
        for at in (1, 2)
    },
    "a response that was recognised by its calls stands whole, with what the client left out of it": {
        "avian--testopenaicompatiblecommon-avian-kimi-multi-tool-streaming--76a24b#1": {"model"},
        "openai--openai-native-tool-search-streaming--573b0e#1": {"model", "people"},
    },
    "a conversation that goes on from a response's id goes on from the log": {
        "openai--openai-codex-mini-latest-tool-round-trip-1--67534c#1": {"model", "parameters", "people"},
        "openai--openai-o3-tool-round-trip-1--298707#1": {"model", "parameters", "people"},
    },
    "a tool cannot be forced while the model thinks (rule deepseek); the provider had refused it": {
        "deepseek--wire-shape-matrix-forced-tool-choice-under-thinking-is-rejected--471461#0": {"parameters"},
        "deepseek--wire-shape-matrix-forced-tool-choice-under-thinking-is-rejected--471461#1": {"parameters"},
    },
    "the provider used the id of a call again, and the client had made ids of its own: the provider's go back": {
        "bedrock-mantle--reused-tool-call-ids-gpt-5-5--3e22e0#2": {"model", "people"},
        "bedrock-mantle--reused-tool-call-ids-gpt-5-5--3e22e0#3": {"model", "people"},
        "bedrock-mantle--reused-tool-call-ids-request--d0cf04#2": {"model", "people"},
        "bedrock-mantle--reused-tool-call-ids-request--d0cf04#3": {"model", "people"},
    },
}
"""Why what goes upstream may differ from what was recorded: reason to exchange to kinds of difference."""

_LOST = {"opaque lost", "text lost"}
ELSEWHERE = {
    "another model's reasoning": {
        "openai--cohere-model-thinking-part--9f3954#1": {name: {"text lost"} for name in FRONTS},
        "openai--mistral-model-thinking-part--0e757a#1": {name: {"text lost"} for name in FRONTS},
    },
    "the recorder wrote a dash of the response in another way, so that the client did not say what it was told": {
        "aws-bedrock--bedrock-model-thinking-part-anthropic-legacy--cbba28#1": dict.fromkeys(FRONTS, _LOST),
    },
    "the client put other words into the model's mouth": {
        "openai--openai-responses-thinking-with-modified-history--65f4e9#2": {"openai-chat": {"text lost"}},
    },
    "the client says that thinking is off, and its dialect has a word for it: then none goes along": {
        exchange: {"anthropic": {"text lost"}}
        for exchange in (
            "gpustack--function-calling-gpustack-qwen3-can-use-tools--0bbde1#1",
            "gpustack--function-calling-gpustack-qwen3-can-use-tools-without-parameters--7c6423#1",
            "ollama--agentic-streaming-structured-output-with-tools--17458c#1",
            "ollama--function-calling-ollama-qwen3-can-use-parallel-tool-calls--50ec80#1",
            "ollama--function-calling-ollama-qwen3-can-use-tools-in-multi-turn-conver--3e12c6#1",
            "ollama--function-calling-ollama-qwen3-can-use-tools-in-multi-turn-conver--3e12c6#2",
            "ollama--function-calling-ollama-qwen3-can-use-tools-in-multi-turn-conver--3e12c6#3",
            "ollama--function-calling-ollama-qwen3-can-use-tools-with-multi-turn-stre--e4317e#1",
            "ollama--function-calling-ollama-qwen3-can-use-tools-with-multi-turn-stre--e4317e#2",
            "ollama--function-calling-ollama-qwen3-can-use-tools-with-multi-turn-stre--e4317e#3",
            "ollama--raw-capture-agent-matrix-multi-turn-tool-run-records-distinct-ra--4ff178#1",
            "ollama--raw-capture-agent-matrix-multi-turn-tool-run-records-distinct-ra--c4551e#1",
            "ollama--tools-two-tools-nonstreaming--667b40#3",
        )
    },
}
"""Where clients of other dialects make a difference: reason to exchange to dialect to kinds of difference."""

WITHOUT_MEMORY = {
    "an item with a text alone has nothing sealed, so that its origin is not known": {
        "deepseek--deepseek-responses-function-tool--dcc4c5#1": {"text lost"},
        "deepseek--deepseek-responses-text-multi-turn--4bde07#1": {"text lost"},
    },
    "what goes on from a response's id is in the log alone": {
        "openai--openai-codex-mini-latest-tool-round-trip-1--67534c#1": {"refused"},
        "openai--openai-o3-tool-round-trip-1--298707#1": {"refused"},
    },
}
"""What another gateway, that has only what the client sends back, cannot give back: as ``EXPLAINED``."""

_EXPECTED = {exchange: kinds for listed in EXPLAINED.values() for exchange, kinds in listed.items()}
_OF_REASONING = {*_LOST, "opaque moved", "text moved", "refused", "twice"}


@pytest.mark.corpus
@pytest.mark.parametrize("case", CONVERSATIONS, ids=IDS)
def test_what_a_client_forgot_goes_upstream_as_it_was_recorded(case: Json) -> None:
    """All reasoning of earlier responses that the accepted request carried is there, in its place, once; what the
    client said is as it said it.
    """
    engine, transport = engine_of({"reasoning.includeInContext": True})
    minted = Minted()
    found: dict[str, set[str]] = {}
    for at, exchange in enumerate(case["exchanges"]):
        if exchange["request"] is not None and exchange["dialect"] in FRONTS:
            differing = set(differences(ask_again(engine, transport, exchange, minted)))
            if exchange["response"].get("status", 200) >= 400:  # what was refused proves nothing of what it carried
                differing &= {"parameters", "people", "model"}
            if differing:
                found[f"{case['case']}#{at}"] = differing
        minted.take(exchange)
    assert {name: kinds for name, kinds in _EXPECTED.items() if name.startswith(f"{case['case']}#")} == found


@pytest.mark.corpus
@pytest.mark.parametrize("case", CONVERSATIONS, ids=IDS)
@pytest.mark.parametrize("name", FRONTS)
def test_clients_of_other_dialects_lose_nothing_either(name: str, case: Json) -> None:
    """The visible part of a conversation with any provider, asked in another dialect: its reasoning goes back to it."""
    engine, transport = engine_of({"reasoning.includeInContext": True})
    client, minted = Client(name, engine, transport), Minted()
    found: dict[str, set[str]] = {}
    expected: dict[str, set[str]] = {}
    for at, exchange in enumerate(case["exchanges"]):
        if exchange["request"] is not None and not goes_on_elsewhere(exchange):
            asked = client.ask(exchange, minted)
            if exchange["dialect"] != name and exchange["response"].get("status", 200) < 400:
                id = f"{case['case']}#{at}"
                found[id] = set(carries_otherwise(asked))
                expected[id] = _EXPECTED.get(id, set()) & _OF_REASONING | _expected_of(name, id)
        minted.take(exchange)
    assert expected == found


@pytest.mark.corpus
@pytest.mark.parametrize("case", CONVERSATIONS, ids=IDS)
@pytest.mark.parametrize("remembers", [True, False])
def test_what_clients_send_back_is_opened_and_goes_along_once(remembers: bool, case: Json) -> None:
    """Also by a gateway that has not seen the conversation before; what is sealed never reaches a provider."""
    engine, transport = engine_of({"reasoning.includeInContext": True})
    client, minted = Echo(), Minted()
    for at, exchange in enumerate(case["exchanges"]):
        if exchange["request"] is not None and exchange["dialect"] in FRONTS:
            if not remembers:
                engine, transport = engine_of({"reasoning.includeInContext": True})
            id = f"{case['case']}#{at}"
            asked = client.ask(engine, transport, exchange, minted)
            alone = {} if remembers else next((found for found in WITHOUT_MEMORY.values() if id in found), {})
            if exchange["response"].get("status", 200) < 400:
                differing = set(carries_otherwise(asked))
                assert differing <= _EXPECTED.get(id, set()) | alone.get(id, set())
                assert alone.get(id, set()) <= differing
            assert not any(token in json.dumps(asked.sent) for token in ("tb1.", "dGIx"))
        minted.take(exchange)


@pytest.mark.corpus
@pytest.mark.parametrize("case", CONVERSATIONS, ids=IDS)
def test_what_goes_upstream_begins_with_what_went_before(case: Json) -> None:
    """Where a client only adds messages, a provider reads the rest from its prompt cache: message by message the same,
    cache marks aside, on every row that may see earlier reasoning; elsewhere up to the end of the last question.
    """
    engine, transport = engine_of({"reasoning.includeInContext": True})
    minted = Minted()
    last: tuple[str, list[Json], list[Json]] | None = None
    found = []
    for at, exchange in enumerate(case["exchanges"]):
        if exchange["request"] is not None and exchange["dialect"] in FRONTS:
            asked = ask_again(engine, transport, exchange, minted)
            target = target_of(exchange, BOOK)
            said, sent = (_unmarked(messages_of(exchange["dialect"], body or {})) for body in (asked.said, asked.sent))
            place = f"{target.base_url} {target.model}"
            if last is not None and last[0] == place and said[: len(last[1])] == last[1]:
                whole = target.rule.later != "never"
                kept = len(last[2]) if whole else 1 + max(n for n, each in enumerate(last[2]) if is_peoples(each))
                if sent[:kept] != last[2][:kept]:
                    found.append(f"{case['case']}#{at}")
            last = place, said, sent
        minted.take(exchange)
    assert [] == found


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(held) for key, held in value.items() if key != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


def _expected_of(name: str, id: str) -> set[str]:
    return next((listed[id].get(name, set()) for listed in ELSEWHERE.values() if id in listed), set())


def goes_on_elsewhere(exchange: Json) -> bool:
    """Whether a request stands on what the provider keeps: no other dialect can ask for that."""
    body = exchange["request"]["body"]
    return bool(body.get("previous_response_id") or body.get("previous_interaction_id"))
