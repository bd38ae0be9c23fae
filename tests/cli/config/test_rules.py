"""``rules``: an update is shown, kept at a yes, listed, named by what goes by it, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import KEY
from tests.cli.conftest import Inside
from thinkback_referee import Referee

HEAD = 'date = "2026-11-20"\nsource = "a release"\n'
RULE = '[[rule]]\nid = "vllm"\nlike = "vllm"\nsince = "2026-11-20"\nsource = "its notes"\nfield = "thoughts"\n'
SERVED = '[[served]]\nendpoint = ["vllm"]\nmodels = ["new-1"]\nsince = "2026-11-20"\nsource = "s"\n'
MODEL = '[[model]]\nmodel = "new-*"\nendpoint = "vllm"\ncontext = 7\nsince = "2026-11-20"\nsource = "s"\n'
OLD = '[[rule]]\nid = "groq"\nlike = "groq"\nsince = "2020-01-01"\nsource = "s"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """An update with a row that changes, a new one of each other kind, and one that is too old."""
    path = tmp_path / "update.toml"
    path.write_text(HEAD + RULE + SERVED + MODEL + OLD)
    return path


def test_an_update_is_shown_kept_listed_and_taken_back(inside: Inside, file: Path) -> None:
    """What changes and whom it concerns is said; a yes is needed; afterwards everything is as before."""
    inside("profile", "save", "lab", "--endpoint", "vllm", "--model", "new-1")
    before = inside("endpoints", "vllm", "--json").json
    unasked = inside("rules", "update", str(file))
    assert 2 == unasked.code
    assert "needs confirmation, and there is no terminal to ask on: add --yes" in unasked.err
    assert "--json cannot ask for confirmation: add --yes" in inside("rules", "update", str(file), "--json").err
    assert [] == inside("rules", "list", "--json").json

    shown = inside("rules", "update", str(file), "--yes")
    assert shown.out.startswith("rule update of 2026-11-20: a release\nrule vllm (vllm):\n")
    for line in (
        f"field: {before['rule']['field']} → thoughts",
        "model new-* (vllm): new",
        "served new-1 (vllm): new",
        "left out: rule groq is of 2020-01-01, and the row that is there of 20",
        "concerns profile lab: vllm new-1, rule vllm → vllm",
    ):
        assert line in shown.out
    assert (
        "its notes [rule update of 2026-11-20: a release]"
        == inside("endpoints", "vllm", "--json").json["rule"]["source"]
    )
    listed = inside("rules", "list").out
    assert listed.startswith("2026-11-20  a release; 3 rows\n  left out: rule groq is of 2020-01-01")
    again = inside("rules", "update", str(file), "--yes", "--json").json
    assert (None, []) == (again["file"], again["concerned"])

    assert "0001.toml is deleted" in inside("rules", "undo").out
    assert before == inside("endpoints", "vllm", "--json").json
    assert (2, "thinkback: no rule update is in force\n") == inside("rules", "undo")[::2]


def test_sessions_that_an_update_concerns_are_named(inside: Inside, file: Path, referee: Referee) -> None:
    """By the endpoint and model of their last request; ``why`` names the update that the next goes by."""
    place = ("--endpoint", "deepseek", "--model", "deepseek-v4-pro", "--base-url", referee.base_url("deepseek"))
    assert 0 == inside("run", "--session", "talk", *place, "Hello", DEEPSEEK_API_KEY=KEY).code
    rule = inside("endpoints", "deepseek", "--model", "deepseek-v4-pro", "--json").json["rule"]["id"]
    file.write_text(HEAD + RULE.replace('"vllm"', f'"{rule}"').replace("field", "dummy"))
    told = inside("rules", "update", str(file), "--yes", "--json").json
    assert [f"session talk: deepseek deepseek-v4-pro, rule {rule} → {rule}"] == told["concerned"]
    assert {"since", "source", "dummy"} <= set(told["changes"][0]["fields"])
    assert "from the rule update of 2026-11-20: a release" in inside("why", "talk", "--next").out


def test_a_broken_update_is_refused_whole_and_a_kept_one_can_be_taken_back(inside: Inside, file: Path) -> None:
    """Nothing of it is kept; a kept file that somebody broke is named with the way back, which works."""
    file.write_text(HEAD + RULE + "[[rule]]\ncolour = 3\n")
    refused = inside("rules", "update", str(file), "--yes")
    assert (2, "") == (refused.code, refused.out)
    assert f"{file}: line 9: rule[1].colour: is not a key of this table" in refused.err
    file.write_bytes(HEAD.encode() + b"# \xff\n")
    assert f"{file}: line 3: it is not UTF-8" in inside("rules", "update", str(file)).err
    file.write_bytes(b"\xc3\xa9" * 200_000)
    assert "an update has at most 256 KiB" in inside("rules", "update", str(file)).err
    assert f"{file.parent} is no file" in inside("rules", "update", str(file.parent)).err
    assert "there is no file" in inside("rules", "update", f"{file}.not").err
    kept = inside.config / "rules" / "updates"
    assert not kept.exists()
    kept.mkdir(parents=True)
    (kept / "0007.toml").write_text("date = ")
    assert "`thinkback rules undo` takes the last update back" in inside("endpoints").err
    assert 0 == inside("rules", "undo").code
    assert 0 == inside("endpoints").code
