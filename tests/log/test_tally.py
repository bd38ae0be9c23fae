"""What a list of sessions shows of one, counted over its commits."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.build import Line
from thinkback.log.drafting import edit
from thinkback.log.tally import TITLE, Tally, tally, title_of, titles_of, unasked
from thinkback.model.blocks import Text
from thinkback.model.commits import Compaction, Draft, Erased, Usage


def test_a_session_is_counted() -> None:
    """The first line of the first message, models, ended turns, tokens of responses and summaries, the latest time."""
    line = Line()
    line.user("\n  Why is\tit so?\nmore")
    line.call("look")
    line.result("look")
    line.answer("So.")
    line.user("And?")
    line.add(Draft("compaction", Compaction("manual", "short", "", "", usage=Usage(100, 20, 7))))
    line.add(edit(line.of("And?"), "Or?"))
    found = tally(line.commits)
    assert Tally("Why is it so?", ("reasoner",), 1, 126, 7, line.commits[-1].time) == found


def test_tokens_beside_a_number_are_counted() -> None:
    """What was cached beside the input and reasoned beside the output, where the usage says that they are."""
    counts = Usage(10, 20, 5, 100, 1_000)
    beside = msgspec.structs.replace(counts, counted=("cache_beside_input", "reasoning_beside_output"))
    sums = []
    for usage in (counts, beside, Usage(counted=beside.counted), Usage(1, 2, counted=beside.counted)):
        line = Line()
        line.add(Draft("compaction", Compaction("manual", "short", "", "", usage=usage)))
        sums.append(tally(line.commits).tokens)

    assert [30, 1_135, 0, 3] == sums


def test_copies_do_not_count() -> None:
    """What a response used counts where the record of its request stands: among the commits, or before them."""
    line = Line()
    line.user("Why?")
    response = line.respond(Text("So."))
    copied = [commit for commit in line.commits if commit.kind != "request"]
    assert (3, 0, 3) == tuple(found.tokens for found in (tally(line.commits), tally(copied), tally(copied, [response])))
    assert ([], [response]) == (unasked(line.commits), unasked(copied))


def test_what_was_erased_says_nothing() -> None:
    """But for what is left of it, and for its time."""
    line = Line()
    gone = msgspec.structs.replace(line.user("secret"), value=Erased("asked to", 1))
    left = msgspec.structs.replace(
        line.user("secret"), value=Erased("asked to", 1, '{"type":"message","text":"[gone]"}')
    )
    broken = msgspec.structs.replace(gone, value=Erased("asked to", 1, "{"))
    assert Tally(last=1) == tally([gone]) == tally([broken])
    assert Tally("[gone]", last=2) == tally([gone, left])


@given(st.lists(st.sampled_from(["ask", "answer", "call", "end"]), max_size=8), st.integers(0, 30))
def test_step_by_step_is_the_same_as_all_at_once(moves: list[str], cut: int) -> None:
    """Wherever the commits are parted."""
    line = Line()
    for number, move in enumerate(moves):
        match move:
            case "ask":
                line.user(f"q {number}")
            case "answer":
                line.answer("So.")
            case _:
                line.call(f"c {number}")
    asked = {commit.response for commit in line.commits[:cut] if commit.kind == "request"}
    assert tally(line.commits) == tally(line.commits[:cut]).plus(tally(line.commits[cut:], asked))


@pytest.mark.parametrize(
    ("text", "title"),
    [("", ""), (" \n\t", ""), ("x" * 200, "x" * TITLE), ("half \ud83d", "half ?"), ("naïve ☃", "naïve ☃")],
)
def test_titles(text: str, title: str) -> None:
    """The first line that says something, cut, without halves of characters."""
    assert title == title_of(text)


def test_a_title_is_the_words_of_a_person() -> None:
    """Not what a program wrote before them, which was one in summaries that were counted earlier."""
    line = Line()
    wrapped = "<environment_context>\n<cwd>/a</cwd>\n</environment_context>"
    line.user(wrapped)
    assert "" == tally(line.commits).title
    assert {"", "<environment_context>"} == titles_of(line.commits)
    line.user(f"{wrapped}\nWhy?")
    line.add(edit(line.of(wrapped), "Or?"))
    assert "Why?" == tally(line.commits).title
    assert {"Why?", "<environment_context>"} == titles_of(line.commits)
    assert {""} == titles_of([])
