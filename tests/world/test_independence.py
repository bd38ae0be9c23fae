"""The stand-ins share nothing: neither the program that they judge nor the other judge."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.world import mind, server

HERE = Path(__file__).parent
STAND_INS = ("mind", "server", "chat", "responses", "anthropic", "gemini", "bedrock", "others", "histories")


def test_stand_ins_import_the_standard_library_and_one_another() -> None:
    """Whatever else they stand for is from the providers' own descriptions."""
    found = set()
    for name in STAND_INS:
        for node in ast.walk(ast.parse((HERE / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom):
                found.add(str(node.module))
            elif isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
    foreign = {module.partition(".")[0] for module in found if not module.startswith("tests.world")}

    assert not foreign & {"thinkback", "thinkback_referee", "tests"}
    assert foreign <= {"__future__", "binascii", "collections", "contextlib", "dataclasses", "hashlib", "http"} | {
        *("json", "pathlib", "re", "threading", "typing", "urllib")
    }


def test_each_dialect_has_a_stand_in() -> None:
    """All nine, whose answers never repeat a thought."""
    with server.World() as world:
        dialects = {provider.dialect for provider in world.providers.values()}
    one, asked = mind.Mind(), mind.Ask("m", "Why?", 0, 0, (), False)
    first, second = (one.answer(asked, {}, mind.Memory(), mind.Mood()) for _ in range(2))

    assert {*("openai-chat", "openai-responses", "anthropic", "gemini", "gemini-interactions")} | {
        *("bedrock", "mistral", "ollama", "cohere")
    } == dialects
    assert (True, False) == (first.text == second.text, first.thought == second.thought)
