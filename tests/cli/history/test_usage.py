"""``usage`` from the command line."""

from __future__ import annotations

import pytest

import thinkback
from tests.cli.command import KEY, Command
from tests.cli.conftest import Inside
from tests.formats.samples import SAMPLES
from thinkback.session.agents.toolbox import toolbox
from thinkback_referee import Call, Referee, Step


@pytest.mark.parametrize(("by", "rows"), [("model", 1), ("turn", 1), ("step", 2), ("session", 1)])
def test_tokens_by(talked: Command, by: str, rows: int) -> None:
    """The parts add up to the whole, in JSON and as a table."""
    told = talked("usage", "--by", by, "--json").json
    assert (rows, 2) == (len(told[f"by_{by}"]), told["total"]["steps"])
    assert told["total"]["output"] == sum(row["output"] for row in told[f"by_{by}"])
    shown = talked("usage", "--by", by).out.splitlines()
    assert shown[0].split() == [by, "input", "cached", "output", "reasoning"]
    assert "all" == shown[rows + 1].split()[0]


def test_context_and_budget(talked: Command) -> None:
    """What the next request carries, and what was spent of the budget where there is one."""
    told = talked("usage").out
    assert ("size of the next request: about" in told, "then warn" in told) == (True, False)
    with thinkback.open(talked.db) as store:
        store.session("talk").set("reasoning.budget", 100_000)
    assert "of 100,000, then warn" in talked("usage", "--family").out
    assert 100_000 == talked("usage", "--json").json["budget"]["limit"]


def test_a_command_that_names_no_session_says_which_it_shows(talked: Command, inside: Inside) -> None:
    """It is the newest in which a model was asked; one with a note alone says nothing."""
    with thinkback.open(talked.db) as store:
        store.session("notes").commit("Remember the milk.")
    assert "note" in inside("sessions").out
    told = inside("usage")
    assert "session talk, the one used last; --all covers the whole log" in told.err
    assert ("talk", 2) == ((found := inside("usage", "--json").json)["session"], found["total"]["steps"])
    assert "session talk, last request:" in inside("why").out
    assert "session talk" not in inside("usage", "talk").err


def test_sub_agents_have_a_line_and_are_part_of_the_sum(command: Command, referee: Referee) -> None:
    """With those that they had in turn; a family counts them where they are."""
    task = Step(tool_calls=[Call("task", {"prompt": "Count."})])
    referee.push(task, task, Step(text="three"), Step(text="two"), Step(text="one"))
    with thinkback.open(command.db, rules={}, settings={"agents.depth": 2}) as store:
        session = store.session(
            "talk", endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key=KEY
        )
        with toolbox(session, ["task"]) as tools:
            session.chat("Go", tools=tools)
        own, delegated = session.usage.total(), session.usage.delegated()
        everything = session.usage.family()

    told = command("usage", "talk", "--json").json
    shown = command("usage", "talk").out.splitlines()
    assert (2, 3) == (own.steps, len(delegated))
    assert (5, 1, 3) == (told["total"]["steps"], len(told["by_model"]), told["sub_agents"]["steps"])
    assert told["total"]["output"] == told["by_model"][0]["output"] + told["sub_agents"]["output"]
    assert everything.use.output == told["total"]["output"]
    assert ["sub-agents", "all"] == [line.split()[0] for line in shown[2:4]]
    assert "sub-agents" not in command("usage", "talk", "--family").out


def test_cost_is_shown_where_a_price_is_known(talked: Command) -> None:
    """No price, no column; with a person's own price each line and the sum have one."""
    told = talked("usage", "--json").json
    assert (None, 2) == (told["total"]["cost_usd"], told["total"]["cost_unknown_of"])
    assert "cost" not in talked("usage").out
    talked.config.mkdir(exist_ok=True)
    (talked.config / "prices.toml").write_text(
        '[[price]]\nmodels = ["deepseek-*"]\ninput = 1\ncached = 1\noutput = 2\nsince = "2020-01-01"\nsource = "me"\n'
    )
    told = talked("usage", "--json").json["total"]
    assert pytest.approx((told["input"] + 2 * told["output"]) / 1e6) == told["cost_usd"]
    for by in ("model", "turn", "step", "session"):
        shown = talked("usage", "--by", by).out.splitlines()
        assert [by, "input", "cached", "output", "reasoning", "cost"] == shown[0].split()
        assert all("$0.0" in line for line in shown[1:3])
    (talked.config / "prices.toml").write_text("[[price]]\n")
    assert "prices.toml: price[0]: Object missing required field" in talked("usage").err


def test_the_whole_log_by_program_and_day_with_a_chart(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was imported counts, at the prices of where its program asks; bars are plain and fit the window."""
    for name in ("codex", "pi"):
        (inside.place / name).write_bytes(SAMPLES[name])
        inside("import", str(inside.place / name), "--program", name)
    told = inside("usage", "--by", "program", "--json").json
    by = {row["program"]: row for row in told["by_program"]}
    assert ({"codex", "pi"}, 0.5) == ({*by}, by["pi"]["cost_usd"])
    assert round(3 / 7, 4) == by["codex"]["reasoning_share"]
    assert told["total"]["output"] == sum(row["output"] for row in by.values())
    assert [] == inside("usage", "--all", "--since", "1h", "--json").json["by_model"]
    assert 1 == len(inside("usage", "--by", "day", "--project", "proj", "--program", "codex", "--json").json["by_day"])
    for columns in (40, 80, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = inside("usage", "--by", "program").out.splitlines()
        at = shown.index("output: # reasoning, = the rest")
        bars = [line.split() for line in shown[at + 1 :]]
        assert ["codex", "pi"] == sorted(bar[0] for bar in bars)
        assert {"#", "="} >= {*"".join(bar[1] for bar in bars)}
        assert columns == max(map(len, shown[at:]))
    assert 2 == inside("usage", "--by", "turn", "--since", "1d").code == inside("usage", "s", "--all").code


def test_a_cost_without_a_price_is_not_nothing(talked: Command, referee: Referee) -> None:
    """A dash stands for what nobody knows the price of, and for a sum of it and of what is free."""
    talked.config.mkdir(exist_ok=True)
    row = '[[price]]\nmodels = ["kimi-*"]\ninput = 0\ncached = 0\noutput = 0\nsince = "2020-01-01"\nsource = "me"\n'
    (talked.config / "prices.toml").write_text(row)
    with thinkback.open(talked.db, rules={}, settings={}) as store:
        session = store.session(
            "talk", endpoint="kimi", model="kimi-k2.6", base_url=referee.base_url("kimi"), api_key=KEY
        )
        session.chat("Go on.")
    shown = talked("usage", "--by", "model").out

    cells = {line.split()[0]: line.split()[-1] for line in shown.splitlines()[1:4]}
    assert {"deepseek-v4-pro": "-", "kimi-k2.6": "$0.0000", "all": "-"} == cells
    assert "of 2 of 3 responses no price is known" in shown


def test_excessive_reasoning_is_told_with_what_to_do(command: Command, referee: Referee) -> None:
    """Five turns of little but reasoning: the hint, for people and for programs."""
    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session(
            "much", endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key=KEY
        )
        for at in range(5):
            referee.push(Step(reasoning="one two three four five six seven eight nine ten " * 9, text="Yes."))
            session.chat(f"Question {at}?")
    shown = command("usage").out
    assert "of the output of the last 5 turns was reasoning" in shown
    assert "set reasoning.effort to" in shown
    (hint,) = command("usage", "--json").json["hints"]
    assert "excessive_reasoning" == hint["kind"]
