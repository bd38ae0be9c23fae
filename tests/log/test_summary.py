"""A summary that a model writes: what it is asked, and which answers are refused."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import CompactionRefused
from thinkback.log.digest import Survivor
from thinkback.log.summary import Summary, again, checked, read, request

DOOR = Survivor("a" * 64, "The door is blue.", ("blue door", "No 9"))
MAT = Survivor("b" * 64, "The key is under the mat.", ())


def answer(**fields: Any) -> str:
    """What a model says: every member, empty unless given."""
    empty: dict[str, Any] = {name: [] for name in Summary.__struct_fields__}
    return json.dumps({**empty, "summary": "They met.", "current_objective": "Meet again.", **fields})


def test_the_request_names_the_shape_and_what_must_survive() -> None:
    """Members, references, texts, and the transcript behind them."""
    told = request("[c] user:\nHi", [DOOR, MAT])
    assert all(name in told for name in Summary.__struct_fields__)
    assert "- [aaaaaaaa]: blue door; No 9" in told
    assert "- [bbbbbbbb]: The key is under the mat." in told
    assert told.endswith("The transcript:\n\n[c] user:\nHi")


def test_without_anything_important_nothing_is_said_of_it() -> None:
    """The request is as short as it can be."""
    assert "important" not in request("x", [])


def test_an_answer_becomes_sections() -> None:
    """What it leaves empty is left out."""
    told = read(answer(decisions=["Use SQLite.", " "], open_tasks=["Write tests."]), [])
    assert "They met.\n\nObjective:\n- Meet again.\n\nDecisions:\n- Use SQLite.\n\nStill open:\n- Write tests." == told


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "Here it is:\n{}\nDone."])
def test_what_models_put_around_json_does_not_matter(around: str) -> None:
    """Fences and polite words are no part of the answer."""
    assert read(answer(), []).startswith("They met.")
    assert read(around.replace("{}", answer()), []).startswith("They met.")


@pytest.mark.parametrize(
    "said",
    [
        "",
        "I cannot do that.",
        "{}",
        '{"summary": "x"}',
        answer(more="x"),
        answer(decisions="x"),
        answer(risks=[1]),
        answer(summary=None),
    ],
)
def test_another_shape_is_refused(said: str) -> None:
    """The reason can be told to the model."""
    with pytest.raises(CompactionRefused, match="not the JSON object that was asked for"):
        read(said, [])


def test_an_empty_summary_is_refused() -> None:
    """Whatever else is there."""
    with pytest.raises(CompactionRefused, match="the summary is empty"):
        read(answer(summary=" \n", decisions=["x"]), [])
    with pytest.raises(CompactionRefused, match="the summary is empty"):
        checked(" ", [])


def test_what_is_lost_is_named() -> None:
    """A text may stand in any member; a reference counts where there is no text."""
    with pytest.raises(CompactionRefused) as caught:
        read(answer(risks=["the Blue  door is locked"]), [DOOR, MAT])
    assert {"missing": ["No 9", "[bbbbbbbb]"]} == caught.value.details
    assert '"No 9"; "[bbbbbbbb]"' in caught.value.message
    assert "No 9" in again(caught.value.message)
    assert "No 9" in read(answer(summary="blue door, no 9 [BBBBBBBB]", decisions=["No 9"]), [DOOR, MAT])


@given(st.text())
def test_any_answer_is_a_summary_or_refused(said: str) -> None:
    """No other exception comes out of whatever a model says."""
    with suppress(CompactionRefused):
        assert read(said, []).strip()
