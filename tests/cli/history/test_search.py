"""``search`` from the command line."""

from __future__ import annotations

from tests.cli.command import Command


def test_reasoning_is_found_by_its_words(talked: Command) -> None:
    """By word, model and the tool that followed; reasoning alone, where asked."""
    thought = next(c for c in talked("log", "--json").json if c["kind"] == "reasoning")
    word = thought["text"].split()[0]
    found = talked("search", word, "--reasoning", "--json").json
    assert {"reasoning"} == {hit["kind"] for hit in found}
    assert thought["hash"] in [hit["hash"] for hit in found]
    called = talked("search", "--reasoning", "--tool", "get_weather", "--model", "deepseek-v4-pro", "--json").json
    assert [thought["hash"]] == [hit["hash"] for hit in called]
    assert "[reasoning]" in talked("search", word).out
    assert "talk" in talked("search", "Oslo", "--kind", "user", "-s", "talk").out


def test_nothing_found_and_bad_filters(talked: Command) -> None:
    """An empty list is no failure; a filter that says nothing is."""
    empty = talked("search", "xylophone")
    assert (0, "", True) == (empty.code, empty.out, "nothing was found" in empty.err)
    assert [] == talked("search", "xylophone", "--json").json
    assert 1 == talked("search", "x", "--kind", "thought").code
    assert 2 == talked("search", "x", "--since", "soon").code
    assert 2 == talked("search", "x", "-s", "gone").code
    assert 0 == talked("search", '"unbalanced AND ( NEAR * ^').code
