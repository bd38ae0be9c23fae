"""``docs/rules.md``: its tables are those of the structs, its examples load, its errors are the real ones."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from thinkback.errors import RuleFileError
from thinkback.model.rule import Endpoint, ModelInfo, Rule, Served
from thinkback.rules import load_rulebook
from thinkback.rules.book import endpoint_ids
from thinkback.rules.updates import Layer, checked

TODAY = "2026-11-20"
TEXT = (Path(__file__).parents[2] / "docs" / "rules.md").read_text("utf-8")
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"^ *```toml\n(.*?)^ *```$", TEXT, re.DOTALL | re.MULTILINE)]
EXAMPLES = [block for block in BLOCKS if not block.startswith("date = ")]
ERRORS = re.findall(r"^\| `(\w+ = .*)` \| `(.*)` \|$", TEXT, re.MULTILINE)
ROW = {"id": '"mine"', "endpoint": '"vllm"', "since": '"2026-11-01"', "source": '"me"'}
Row: TypeAlias = Rule | Endpoint | ModelInfo | Served
KINDS: list[tuple[str, type[Row]]] = [("rule", Rule), ("endpoint", Endpoint), ("model", ModelInfo), ("served", Served)]
NESTED = {
    "auth", "controls", "guard", "keep_switch", "drop_switch", "server_drop", "server_state", "forbids", "omits",
    "adds", "overhead", "limit_queries",
}  # fmt: skip


def table(kind: str) -> dict[str, tuple[str, str]]:
    """Key to default and text, as the document's table for one kind of row has them."""
    section = TEXT.partition(f"### `[[{kind}]]`\n")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `?(.*?)`? \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) == len(dict.fromkeys(row[0] for row in rows)) == section.count("\n| `"), "a row is not understood"
    return {key: (default, text) for key, default, text in rows}


@pytest.mark.parametrize(("kind", "struct"), KINDS)
def test_every_key_stands_in_its_table(kind: str, struct: type[Row]) -> None:
    """The table of each kind of row has the fields of its struct, and a rule's has ``like`` besides."""
    assert {*struct.__struct_fields__, *(["like"] if kind == "rule" else [])} == set(table(kind))


@pytest.mark.parametrize(("kind", "struct"), KINDS)
def test_defaults_are_those_of_the_structs(kind: str, struct: type[Row]) -> None:
    """What a table calls required is required, and every other default is the real one."""
    documented = table(kind)
    for field in msgspec.structs.fields(struct):
        default, _ = documented[field.name]
        assert ("required" == default) == field.required, field.name
        if not field.required:
            given = {} if default == "none" else tomllib.loads(f"{field.name} = {default}")
            required = {other.name: "x" for other in msgspec.structs.fields(struct) if other.required}
            assert msgspec.convert(required, struct) == msgspec.convert({**required, **given}, struct), field.name


def test_the_update_on_the_page_may_be_kept() -> None:
    """It is the only block that is no rule file, and it holds."""
    (update,) = (block for block in BLOCKS if block not in EXAMPLES)
    assert ["vllm"] == [row.id for row in checked("update.toml", update, Layer(), endpoint_ids(), TODAY).rule]


def test_keys_of_nested_tables_are_named() -> None:
    """The line about a key that holds a table or a list of tables names each key of it."""
    found = set()
    for kind, struct in (("rule", Rule), ("endpoint", Endpoint), ("model", ModelInfo)):
        for field in msgspec.structs.fields(struct):
            for inner in getattr(field.type, "__args__", (field.type,)):
                if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                    found.add(field.name)
                    text = table(kind)[field.name][1]
                    assert [] == [key for key in inner.__struct_fields__ if f"`{key}`" not in text]
    assert NESTED == found


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_load(text: str) -> None:
    """Every TOML example is a file that is accepted as it stands."""
    assert load_rulebook({"rules.toml": text}).rules()


def test_the_example_of_a_server_of_ones_own_does_what_is_said_of_it() -> None:
    """Its row is in force by name and by address, demands the field, and has the rest from the shipped row."""
    book = load_rulebook({"rules.toml": EXAMPLES[-1]})
    assert "lab" == book.endpoint_for_url("http://10.0.0.5:8000/v1").id
    target = book.target("lab", "acme/thinker-2", on=TODAY)
    assert ("lab-thinker", False, 131072) == (target.rule.id, target.guessed, target.info.context)
    assert ("field", "reasoning_content", "must") == (target.rule.form, target.rule.field, target.rule.open_turn)
    shipped, _ = book.rule_for("vllm", "some-model", TODAY)
    for key in ("thinks_unless", "thinking_off", "controls"):
        assert getattr(shipped, key) == getattr(target.rule, key)


@pytest.mark.parametrize(("line", "message"), ERRORS)
def test_errors_read_as_they_are_documented(line: str, message: str) -> None:
    """Each key of the table of errors, put into a rule, leads to the message beside it."""
    key, _, value = line.partition(" = ")
    text = "[[rule]]\n" + "\n".join(f"{name} = {said}" for name, said in {**ROW, key: value}.items())
    with pytest.raises(RuleFileError) as caught:
        load_rulebook({"rules.toml": text})
    assert message == caught.value.message


def test_the_document_has_examples_and_errors() -> None:
    """The tests above read something."""
    assert (3, 6) == (len(EXAMPLES), len(ERRORS))
