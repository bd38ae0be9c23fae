"""The registry: the one place that knows the dialects, and what a dialect says of itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import thinkback
from thinkback.errors import NotFoundError
from thinkback.model.blocks import Carrier, ThinkingBlock
from thinkback.wire.dialect import Dialect
from thinkback.wire.front import Field, Listed, both_spellings
from thinkback.wire.registry import CHAT, FRONTS, PACKAGES, dialect, front
from thinkback.wire.result import Report

SOURCE = Path(thinkback.__file__).parent
NO_CHOICE = {
    **{
        ("adapters/pydantic_ai/messages.py", name): "a value of the table that says in which dialect its blocks are"
        for name in ("anthropic", "bedrock", "cohere", "gemini", "mistral", "openai-chat", "openai-responses")
    },
    ("cli/connect/agents.py", "gemini"): "the name of a program",
    ("formats/gemini_cli.py", "gemini"): "a type of record in that program's files",
    **{
        ("formats/pi.py", name): "a value of the table that says in which dialect that program's blocks are"
        for name in ("anthropic", "gemini", "openai-chat", "openai-responses")
    },
    ("model/blocks.py", "anthropic"): "a value of ThinkingBlock.format, a word older than the dialect",
    ("model/rule.py", "openai-chat"): "the default of rule data: what an endpoint speaks that names no dialect",
}
"""Where a dialect's name stands in the source outside ``wire`` and chooses nothing, with the reason."""


def sources(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """Every module outside ``wire`` whose text has one of ``words``, where there are any, by its path."""
    for path in sorted(SOURCE.rglob("*.py")):
        name, text = path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")
        if not name.startswith("wire/") and (not words or any(word in text for word in words)):
            yield name, ast.parse(text)


def test_no_dialect_is_chosen_by_name_outside_wire() -> None:
    """A difference between dialects is in its folder: elsewhere no name of one is a literal."""
    named = {
        (name, node.value)
        for name, module in sources()
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in PACKAGES
    }

    assert NO_CHOICE.keys() == named


def test_no_default_is_compared_with() -> None:
    """``CHAT`` and ``FRONTS`` stand in for a name that is missing; comparing with them would be a choice."""
    compared = [
        (name, node.lineno)
        for name, module in sources("CHAT", "FRONTS")
        for node in ast.walk(module)
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if (isinstance(side, ast.Name) and side.id == "CHAT")
        or (isinstance(side, ast.Attribute) and side.attr == "CHAT")
        or (isinstance(side, ast.Subscript) and isinstance(side.value, ast.Name) and side.value.id == "FRONTS")
    ]

    assert [] == compared


def test_a_dialect_is_imported_when_it_is_asked_for() -> None:
    """The registry imports none; a dialect brings neither another one nor what only a gateway needs."""
    code = """
import sys
from thinkback.wire.registry import PACKAGES, dialect
packages = set(PACKAGES.values())
loaded = lambda: {name.split(".")[2] for name in sys.modules if name.startswith("thinkback.wire.")} & packages
assert not loaded(), loaded()
dialect("anthropic")
assert loaded() == {"anthropic"}, loaded()
fronts = {"front", "write_response", "unsigned", "opaque"}
assert not fronts & {name.removeprefix("thinkback.wire.anthropic.") for name in sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_dialect_says_all_of_itself(name: str) -> None:
    """It has its own name, and what every dialect needs is there."""
    found = dialect(name)

    assert name == found.name
    assert "max_tokens" in found.parameters.names
    assert Report() == found.report("{}")
    assert (name in FRONTS) == (found.front is not None)
    assert not found.parameters.choice or not (found.parameters.choice.parallel and found.parameters.choice.single)


def test_a_field_that_is_left_out_is_refused() -> None:
    """No field of a dialect has a default, so that nothing is forgotten silently."""
    with pytest.raises(TypeError, match="Missing required argument"):
        Dialect(name="toy", maker="toy")  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["toy", "bedrock"])
def test_what_does_not_exist_is_refused_with_what_does(name: str) -> None:
    """A dialect that nobody knows, and one that no client speaks."""
    with pytest.raises(NotFoundError) as refused:
        front(name)

    assert ("use one of: anthropic, gemini, openai-chat, openai-responses",) == refused.value.next_actions
    with pytest.raises(NotFoundError, match="there is no dialect 'toy'"):
        dialect("toy")


ITEMS: dict[str, list[tuple[dict[str, object], str]]] = {
    "openai-responses": [
        ({"role": "user", "content": []}, "user"),
        ({"type": "message", "role": "assistant"}, "assistant"),
        ({"type": "function_call", "name": "get_weather"}, "function call get_weather"),
        ({"type": "function_call_output", "output": "4"}, "function call output"),
        ({"type": "reasoning"}, "reasoning"),
        ({"id": "item_1"}, ""),
    ],
    "gemini-interactions": [
        ({"type": "user_input"}, "user input"),
        ({"type": "function_call", "name": "f"}, "function call f"),
    ],
    "gemini": [({"role": "model", "parts": []}, "model"), ({"parts": []}, "")],
}


@pytest.mark.parametrize("name", PACKAGES)
def test_an_item_of_a_request_has_a_name_for_people(name: str) -> None:
    """Its role; where only messages have one, the type of the others."""
    for item, expected in ITEMS.get(name, [({"role": "user"}, "user")]):
        assert expected == dialect(name).item_name(item)


REFUSED = {
    "gemini": {
        "cachedContent": ("c", 0),
        "generationConfig.candidateCount": (2, 1),
        "generationConfig.logprobs": (3, 0),
        "generationConfig.responseLogprobs": (True, False),
        "generationConfig.responseModalities": (["TEXT", "IMAGE"], ["TEXT"]),
    },
    "openai-chat": {
        "audio": ({"voice": "v"}, False),
        "functions": ([{}], []),
        "logprobs": (True, False),
        "modalities": ("audio", "text"),
        "n": (2, 1),
        "top_logprobs": (1, 0),
    },
    "openai-responses": {
        "background": (True, False),
        "conversation": ("c", False),
        "include": (["message.output_text.logprobs"], ["reasoning.encrypted_content"]),
        "previous_response_id": ("r", False),
        "prompt": ({"id": "p"}, False),
        "top_logprobs": (1, 0),
    },
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_parameter_that_must_not_be_lost_is_refused_where_it_asks_for_something(name: str) -> None:
    """Each with a value that does and one that does not."""
    refused = {path: asks for path, _, asks in dialect(name).parameters.refused}

    expected = REFUSED.get(name, {})
    assert expected.keys() == refused.keys()
    assert [(True, False)] * len(expected) == [
        (refused[path](asking), refused[path](idle)) for path, (asking, idle) in expected.items()
    ]


@pytest.mark.parametrize("name", PACKAGES)
def test_tools_are_chosen_in_the_words_of_the_dialect(name: str) -> None:
    """One tool by name and several of them name those tools."""
    choice = dialect(name).parameters.choice
    if choice is not None and choice.one is not None:
        assert "walk" in str(choice.one("walk"))
    if choice is not None and choice.several is not None:
        assert str(choice.several("auto", ["walk", "run"])) != str(choice.several("required", ["walk", "run"]))


@pytest.mark.parametrize("name", PACKAGES)
def test_readable_reasoning_is_the_text_of_the_wire(name: str) -> None:
    """One part of a summary reads the same in every dialect."""
    block = ThinkingBlock("Hm.", kind="summary", carriers=(Carrier("encrypted", "x"),))

    assert "Hm." == dialect(name).trace.readable(block)


@pytest.mark.parametrize("name", FRONTS)
def test_models_are_listed_as_clients_of_the_dialect_expect(name: str) -> None:
    """Each document of one model stands in the document of all, which may be empty."""
    listed = Listed("m", created=1_700_000_000, context=7)
    written = front(name)

    one = written.show_model(listed)
    assert [one] in written.list_models([listed]).values()
    assert [] in written.list_models([]).values()
    assert one.get("created_at", "2023-11-14T22:13:20Z") == "2023-11-14T22:13:20Z"


STORED = [
    ("openai-chat", "url", "ms://file", "https://example.org/a.png"),
    ("openai-chat", "text", "fileid://1", "Hm."),
    ("gemini", "fileUri", "gs://bucket/a.png", "https://example.org/a.png"),
    ("anthropic", "container", {"id": "c"}, {"type": "auto"}),
    (
        "openai-responses",
        "",
        {"type": "image_generation_call", "id": "ig_1"},
        {"type": "image_generation_call", "id": "ig_1", "result": "AA=="},
    ),
]


@pytest.mark.parametrize(("name", "key", "stored", "public"), STORED)
def test_what_an_account_stores_is_told_from_what_everybody_has(
    name: str, key: str, stored: object, public: object
) -> None:
    """An address inside an account is one, a page of the web is none."""
    names = {field.key: field.names for field in front(name).body.stored}[key]

    assert (True, False) == (names(stored), names(public))


@pytest.mark.parametrize(
    ("tools", "leads"),
    [([{"model": "m"}], True), (["m", {"name": "f"}, {"model": ""}], False), ({"model": "m"}, False)],
)
def test_a_tool_of_an_item_may_name_a_model(tools: object, leads: bool) -> None:
    """As a tool of the request may."""
    names = {(field.under, field.key): field.names for field in front("openai-responses").body.models}

    assert leads == names["input", "tools"](tools)


def test_googles_fields_are_spelt_both_ways() -> None:
    """As in JSON and as in protocol buffers, once where both are the same."""
    assert (Field("fileUri"), Field("file_uri"), Field("engine")) == both_spellings("fileUri", "engine")


def test_a_client_that_nothing_tells_apart_speaks_chat_completions() -> None:
    """The first front claims every path."""
    assert CHAT == FRONTS[0]
    assert front(CHAT).address.marks.search("/anything")
