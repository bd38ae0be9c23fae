"""``search`` from the command line."""

from __future__ import annotations

import re

import pytest

from tests.cli.command import Command
from tests.cli.conftest import Inside
from tests.formats.samples import SAMPLES


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
    bare = talked("search")
    assert (2, True) == (bare.code, 'thinkback search "code word"' in bare.err)
    assert 0 == talked("search", "--json").code
    assert 1 == talked("search", "x", "--kind", "thought").code
    assert 2 == talked("search", "x", "--since", "soon").code
    assert 2 == talked("search", "x", "-s", "gone").code
    assert 0 == talked("search", '"unbalanced AND ( NEAR * ^').code


def test_what_other_programs_said_is_found_by_program_and_project_and_opened(inside: Inside) -> None:
    """Behind the title of its session; facets count; ``--open`` shows the conversation from the hit on."""
    for name in ("codex", "gemini-cli", "pi"):
        (inside.place / name).write_bytes(SAMPLES[name])
        inside("import", str(inside.place / name), "--program", name)
    (hit,) = inside("search", "list them", "--reasoning", "--program", "gemini-cli", "--json").json
    assert ("gemini-cli", "Which file?", None) == (hit["program"], hit["title"], hit["project"])
    assert [] == inside("search", "list", "--reasoning", "--program", "pi", "--json").json
    heading, first, *_ = inside("search", "notes.txt", "--project", "proj", "-n", "1").out.splitlines()
    assert (True, True) == (heading.startswith("session "), heading.endswith(": proj: Which file?"))
    assert re.fullmatch(r"  \w{8}  .*", first)
    found = inside("search", "notes.txt", "--project", "proj", "--facets", "--json").json
    assert (found["hits"], {"proj": found["hits"]}) == (sum(found["program"].values()), found["project"])
    assert {"codex", "pi"} == {*found["program"]}
    shown = inside("search", "notes.txt", "--facets").out.splitlines()
    assert ["program", "model", "project", "day"] == [line for line in shown[1:] if not line.startswith(" ")]
    opened = inside("search", "notes.txt", "--kind", "assistant", "--program", "pi", "--open").out
    assert "proj: Which file?: from commit" in opened.splitlines()[0]
    assert ("notes.txt" in opened, "Let me look." in opened) == (True, False)
    assert "nothing was found" in inside("search", "notes.txt", "--program", "none", "--open", "3").err
    assert 2 == inside("search", "notes.txt", "--open", "--facets").code


def test_hits_are_in_the_order_of_when_they_were_said(inside: Inside) -> None:
    """Newest first, though what is oldest was imported last."""
    for day in ("21", "20", "19"):
        told = (
            SAMPLES["claude-code"]
            .replace(b'"s1"', f'"s{day}"'.encode())
            .replace(b"2026-11-22", b"2026-11-" + day.encode())
        )
        (inside.place / day).write_bytes(told)
        inside("import", str(inside.place / day), "--program", "claude-code")
    found = [hit["time"] for hit in inside("search", "file", "--json").json]
    assert found == sorted(found, reverse=True)
    assert {"21", "20", "19"} == {time[8:10] for time in found}


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_the_limit_left_out_is_told(talked: Command, inside: Inside, more: tuple[str, ...]) -> None:
    """That there is more is said beside what is found, and not where all is shown."""
    every = len(inside("search", "weather", "--json").json)
    cut = inside("search", "weather", "--limit", str(every - 1), *more)
    assert every > 1
    assert "there are more: --limit" in cut.err
    assert not more or every - 1 == len(cut.json)
    whole = inside("search", "weather", "--limit", str(every), *more)
    assert "there are more" not in whole.err
    opens = "" if more else "shows the first whole; --open N shows the conversation from result N on\n"
    assert whole.err.endswith(opens)
    assert bool(opens) is ("`thinkback show " in whole.err)
