"""The seed's formal requirements of blocks, parsing and settings, and ERR-001 and ERR-002, each by its number.

The functions over blocks, the policies and the business rules are in ``compile/test_seed.py``, the edge cases in
``test_edge_cases.py``, the display and profiles in ``test_display.py``; the table knows every number, wherever it is.
"""

from __future__ import annotations

import ast
import functools
import typing
from pathlib import Path

import pytest

from tests.acceptance.hosts import OF, at, body, statuses, talk, thoughts
from tests.acceptance.pointers import TESTS
from tests.session.chats import get_weather
from thinkback.compile.counts import estimate_thinking_tokens
from thinkback.errors import SettingError
from thinkback.model import canonical
from thinkback.model.blocks import Block, ThinkingBlock
from thinkback.session.store import SessionStore, open
from thinkback_referee import Referee, Step

NUMBERS = {
    "req_think_001": 3,
    "req_think_002": 4,
    "req_think_003": 4,
    "req_think_004": 5,
    "req_think_005": 3,
    "req_think_006": 6,
    "req_think_007": 4,
}
IDS = (
    *(f"{group}_{number}" for group, last in NUMBERS.items() for number in range(1, last + 1)),
    *(f"br_{number:03}" for number in range(1, 10)),
    *(f"ec_{number:03}" for number in range(1, 8)),
    *(f"err_{number:03}" for number in range(1, 4)),
)
DEEPSEEK = ("deepseek", "deepseek-v4-pro")


@functools.cache
def names_of_tests() -> tuple[str, ...]:
    """The names of all test functions, without ``test_``."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sorted(Path(TESTS).rglob("test_*.py")))
    found = (node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef))
    return tuple(name.removeprefix("test_") for name in found)


@pytest.mark.parametrize("id", IDS)
def test_a_requirement_has_a_test_of_its_name(id: str) -> None:
    """Each number of the seeds begins the name of a test."""
    assert any(name.startswith(f"{id}_") for name in names_of_tests())


@pytest.mark.parametrize(
    ("place", "field"), [(DEEPSEEK, "reasoning_content"), (("groq", "openai/gpt-oss-120b"), "reasoning")]
)
def test_req_think_001_1_source_field(tmp_path: Path, referee: Referee, place: tuple[str, str], field: str) -> None:
    """The field that a thought came in is kept in the log, and is the one it goes back in."""
    with open(tmp_path / "log.db") as store:
        at(store, referee, *place).chat("How is the weather in Oslo?", tools=[get_weather])
    with open(tmp_path / "log.db") as store:
        fields = {block.source_field for block in thoughts(at(store, referee, *place))}
    message = next(found for found in body(referee)["messages"] if found.get("tool_calls"))
    assert ({field}, True, [200, 200]) == (fields, field in message, statuses(referee))


def test_req_think_001_2_signature(tmp_path: Path, referee: Referee) -> None:
    """The signature of a thought is kept in the log as it came, and goes back so."""
    with open(tmp_path / "log.db") as store:
        talk(store, referee, OF["anthropic"]).chat("How is the weather?", tools=[get_weather])
    with open(tmp_path / "log.db") as store:
        signatures = [block.signature for block in thoughts(talk(store, referee, OF["anthropic"]))]
    sent = [part for message in body(referee)["messages"] for part in message["content"] if isinstance(part, dict)]
    returned = [part["signature"] for part in sent if part.get("type") == "thinking"]
    assert (True, signatures[: len(returned)]) == (all(signatures), returned)
    assert "" == ThinkingBlock("a").signature


def test_req_think_001_3_part_of_the_union() -> None:
    """A thought is one of the kinds of blocks, and told apart from the others when it is read back."""
    assert ThinkingBlock in typing.get_args(Block)
    block = ThinkingBlock("I weigh it.", source_field="reasoning_content", signature="c2ln")
    assert block == canonical.decode(canonical.encode(block), Block)


def test_req_think_003_1_streamed_reasoning_content(store: SessionStore, referee: Referee) -> None:
    """Deltas of ``reasoning_content`` become one block, before that of the answer."""
    referee.push(Step(reasoning="I weigh it.", text="Yes.", field="reasoning_content"))
    session = at(store, referee, *DEEPSEEK)
    session.chat("Well?")
    kinds = [commit.kind for commit in session.log() if commit.index >= 0]
    assert (["reasoning", "assistant"], ["I weigh it."]) == (kinds, [block.thought for block in thoughts(session)])


def test_req_think_003_2_whole_reasoning_content(store: SessionStore, referee: Referee) -> None:
    """The same of a response that was not streamed."""
    referee.push(Step(reasoning="I weigh it.", text="Yes.", field="reasoning_content"))
    session = at(store, referee, *DEEPSEEK)
    session.chat("Well?", stream=False)
    kinds = [commit.kind for commit in session.log() if commit.index >= 0]
    assert (["reasoning", "assistant"], ["I weigh it."]) == (kinds, [block.thought for block in thoughts(session)])


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_req_think_003_3_stamped_with_its_field(store: SessionStore, referee: Referee, stream: bool) -> None:
    """The block says that it came in ``reasoning_content``."""
    referee.push(Step(reasoning="I weigh it.", text="Yes.", field="reasoning_content"))
    session = at(store, referee, *DEEPSEEK)
    session.chat("Well?", stream=stream)
    assert ["reasoning_content"] == [block.source_field for block in thoughts(session)]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_req_think_003_4_absent_reasoning_content(store: SessionStore, referee: Referee, stream: bool) -> None:
    """Without the field there is no block, no error, and the conversation goes on."""
    referee.push(Step(text="Yes."))
    session = at(store, referee, *DEEPSEEK)
    assert ("completed", None) == ((reply := session.chat("Well?", stream=stream)).state, reply.reasoning)
    assert [] == thoughts(session)
    assert "completed" == session.chat("And now?", stream=stream).state
    assert [200, 200] == statuses(referee)


def test_req_think_006_1_enabled(store: SessionStore) -> None:
    """reasoning.enabled defaults to true."""
    assert True is store.session("new", endpoint="openai", model="gpt-5.4").settings.enabled


def test_req_think_006_2_include_in_context(store: SessionStore) -> None:
    """reasoning.includeInContext defaults to false, where no data of the endpoint says that it wants it."""
    bare = store.session("new", model="some-model", base_url="https://llm.house.example/v1")
    assert False is bare.settings.include_in_context


def test_req_think_006_3_include_in_response(store: SessionStore) -> None:
    """reasoning.includeInResponse defaults to true."""
    assert True is store.session("new", endpoint="openai", model="gpt-5.4").settings.include_in_response


def test_req_think_006_4_format(store: SessionStore) -> None:
    """reasoning.format defaults to 'field'."""
    assert "field" == store.session("new", endpoint="openai", model="gpt-5.4").settings.format


def test_req_think_006_5_strip_from_context(store: SessionStore) -> None:
    """reasoning.stripFromContext defaults to 'none'."""
    assert "none" == store.session("new", endpoint="openai", model="gpt-5.4").settings.strip_from_context


@pytest.mark.parametrize(
    ("key", "old", "bad", "allowed"),
    [
        ("format", "native", "xml", ("field", "native")),
        ("stripFromContext", "all", "some", ("all", "allButLast", "none")),
        ("effort", "low", "hihg", ("minimal", "low", "medium", "high")),
        ("enabled", "false", "perhaps", ("true", "false")),
        ("includeInContext", "true", "2", ("true", "false")),
        ("includeInResponse", "false", "", ("true", "false")),
        ("maxTokens", "2000", "many", ("whole number",)),
    ],
)
def test_err_001_an_invalid_value(store: SessionStore, key: str, old: str, bad: str, allowed: tuple[str, ...]) -> None:
    """It is refused with the key, the value and what is allowed; the setting keeps its value, stored too."""
    name = f"reasoning.{key}"
    session = store.session("talk", endpoint="openai", model="gpt-5.4", api_key="sk-key-of-the-tests")
    session.set(name, old)
    before = session.settings
    with pytest.raises(SettingError) as caught:
        session.set(name, bad)
    told = " ".join((str(caught.value), *caught.value.next_actions))
    assert [] == [word for word in (name, bad, *allowed) if word not in told]
    assert before == session.settings
    assert before == store.session("talk", endpoint="openai", model="gpt-5.4").settings


def test_err_002_an_estimate_that_fails() -> None:
    """It falls back to characters, higher than the usual estimate, with a warning and without an error."""
    blocks = [ThinkingBlock("twelve signs"), ThinkingBlock("and some more of them")]

    def broken(text: str) -> int:
        raise ValueError(f"no such tokenizer for {text}")

    with pytest.warns(UserWarning, match="token count failed"):
        fallen = estimate_thinking_tokens(blocks, broken)
    assert estimate_thinking_tokens(blocks) < fallen == 11
