"""What is to change warns once, where it is used."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from tests.cli.conftest import Inside
from thinkback import deprecations
from thinkback.deprecations import Deprecation
from thinkback.settings import Layers

ROWS = (
    Deprecation("models", "command", "1.2", "use catalogue"),
    Deprecation("profile list --json", "option", "1.2", "it is the default"),
    Deprecation("display.reasoning", "setting", "1.2", "use display.thinking"),
)


def told(run: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(each.message) for each in caught]


def test_nothing_is_to_change_now() -> None:
    """Before the first published release changes stand in the changelog alone."""
    assert () == deprecations.DEPRECATIONS


def test_what_is_to_change_warns_once(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command, an option of one, and a setting, with what to use instead; nothing else does."""
    monkeypatch.setattr(deprecations, "DEPRECATIONS", ROWS)
    monkeypatch.setattr(deprecations, "_told", set())

    others = (("endpoints", "vllm"), ("profile", "list"), ("endpoints", "vllm", "--json"), ("profile", "--", "--json"))
    assert [] == told(lambda: [inside(*words) for words in others])
    command = ["the command models is to change, since version 1.2: use catalogue"]
    assert [command, []] == [told(lambda: inside("models", "vllm")) for _ in range(2)]
    option = ["the option profile list --json is to change, since version 1.2: it is the default"]
    assert [option, []] == [told(lambda: inside("profile", "list", "--json")) for _ in range(2)]
    assert [] == told(lambda: Layers().set("session", "reasoning.strict", True))
    setting = ["the setting display.reasoning is to change, since version 1.2: use display.thinking"]
    assert setting == told(lambda: Layers().replace("user", {"display.reasoning": "full"}))
    assert [] == told(lambda: Layers().set("session", "display.reasoning", "full"))
