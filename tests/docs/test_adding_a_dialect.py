"""The page about adding a dialect: its code is a dialect, and a conversation can be had in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import thinkback.wire
from thinkback.wire import registry

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-dialect.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# src/thinkback/wire/(diary/\w+\.py)\n")


@pytest.fixture
def dialect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The dialect of the page, registered until the test ends."""
    (tmp_path / "diary").mkdir()
    for block in BLOCKS:
        if named := FILE.match(block):
            (tmp_path / named[1]).write_text(block)
    monkeypatch.setattr(thinkback.wire, "__path__", [*thinkback.wire.__path__, str(tmp_path)])
    (line,) = (block for block in BLOCKS if block.startswith("# src/thinkback/wire/registry.py"))
    monkeypatch.setattr(registry, "PACKAGES", dict(registry.PACKAGES))
    exec(line, vars(registry))
    yield
    registry.dialect.cache_clear()
    for name in [name for name in sys.modules if name.startswith("thinkback.wire.diary")]:
        del sys.modules[name]
    vars(thinkback.wire).pop("diary", None)


@pytest.mark.usefixtures("dialect")
def test_the_dialect_of_the_page_holds_a_conversation() -> None:
    """Its files make a dialect, its rows an endpoint, and its conversation comes back as it was."""
    (rules,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (conversation,) = (block for block in BLOCKS if "store.session(" in block)

    exec(conversation, {"RULES": rules})


def test_the_page_names_every_field_of_a_dialect() -> None:
    """What a field means is said where the dialect is made."""
    from thinkback.wire.dialect import Dialect
    from thinkback.wire.parameters import Parameters

    said = set(re.findall(r"\b\w+\b", PAGE))
    assert set() == {*Dialect.__struct_fields__, *Parameters.__struct_fields__} - said
