"""What requests cost: reported, priced, or not known."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from thinkback.errors import RuleFileError
from thinkback.formats.registry import MODULES
from thinkback.model.commits import Usage
from thinkback.observe.cost import Cost, Price, Prices, Reported, cost, cost_of, packaged, read
from thinkback.rules import packaged as rules
from thinkback.turn.spending import StepUse
from thinkback.turn.usage import TokenUse, token_use

NONE = Prices()
AT = int(datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC).timestamp() * 1_000_000)


def row(**fields: Any) -> Price:
    """A price of one dollar per million tokens of input, ten of output."""
    return Price(**{"input": 1.0, "output": 10.0, "since": "2026-01-01", "source": "me", "models": ("m*",), **fields})


def use(input: int | None = 1_000_000, output: int | None = 100_000, cached: int | None = None) -> TokenUse:
    """Counts."""
    return TokenUse(input, cached, output)


def own(*rows: Price) -> Prices:
    """A person's prices."""
    return Prices(rows)


def test_input_and_output_have_a_price_each() -> None:
    """Reasoning is part of the output, as providers bill it."""
    assert 2.0 == cost(use(), None, "here", "m1", AT, own(row()))


def test_what_was_cached_or_written_to_a_cache_has_its_own_price() -> None:
    """Each token is paid for once."""
    usage = Usage(cache_write=200_000)
    prices = own(row(cached=0.1, write=2.0))
    assert pytest.approx(0.5 + 0.03 + 0.4 + 1.0) == cost(use(cached=300_000), usage, "here", "m1", AT, prices)


def test_both_ways_of_counting_a_cache_cost_the_same() -> None:
    """One dialect's input is without what was cached, another's with it."""
    beside = Usage(500, 100, None, 300, 200, ("cache_beside_input",))
    inside = Usage(1000, 100, None, 300, 200)
    prices = own(row(cached=0.1, write=2.0))
    sums = [cost(token_use(found, (), "inside"), found, "here", "m1", AT, prices) for found in (beside, inside)]
    assert sums[0] == sums[1] is not None


@pytest.mark.parametrize(
    ("used", "usage", "prices"),
    [
        (use(), None, NONE),
        (use(), None, own(row(models=("other",)))),
        (use(), None, own(row(endpoints=("there",)))),
        (use(), None, own(row(since="2026-12-01"))),
        (use(), None, own(row(up_to=999_999))),
        (use(input=None), None, own(row())),
        (use(output=None), None, own(row())),
        (use(cached=5), None, own(row())),
        (use(), Usage(cache_write=5), own(row())),
        (use(), Usage(wire='{"hour": {"written": 5}}'), own(row(unless=("hour.written",)))),
    ],
)
def test_a_cost_is_never_guessed(used: TokenUse, usage: Usage | None, prices: Prices) -> None:
    """Without a price for this model, day and length, or without a count that it takes, there is none."""
    assert cost(used, usage, "here", "m1", AT, prices) is None


def test_the_row_that_fits_best_counts() -> None:
    """The longest pattern, then the newest day, then the narrowest bound."""
    prices = own(
        row(input=1.0),
        row(models=("m1*",), input=2.0),
        row(models=("m1*",), input=3.0, since="2026-05-01"),
        row(models=("m1*",), input=4.0, since="2026-05-01", up_to=2_000_000),
        row(models=("m1*",), input=5.0, since="2026-05-01", up_to=9_000_000),
    )
    assert 5.0 == cost(use(), None, "here", "m1", AT, prices)
    assert pytest.approx(3.0 * 10 + 1.0) == cost(use(10_000_000), None, "here", "m1", AT, prices)
    assert 2.0 == cost(use(), None, "here", "m2", AT, prices)


def test_a_persons_price_wins_over_ours() -> None:
    """Whoever has another contract says so; also that our price is not theirs."""
    mine = own(row(endpoints=("openai",), models=("gpt-5",), input=100.0))
    assert 101.0 == cost(use(), None, "openai", "gpt-5", AT, mine)
    assert pytest.approx(2.25) == cost(use(), None, "openai", "gpt-5", AT, NONE)


def test_what_the_provider_reports_wins() -> None:
    """Over every price, in the unit it reports in."""
    assert 0.95 == cost(use(), Usage(wire='{"cost": 0.95}'), "openrouter", "m1", AT, own(row()))
    ticks = Usage(wire='{"cost_in_usd_ticks": 37756000}')
    assert pytest.approx(0.0037756) == cost(use(), ticks, "xai", "m1", AT, NONE)
    mine = Prices(reported=(Reported(("here",), "price.cents", "me", 100),))
    assert 0.5 == cost(use(), Usage(wire='{"price": {"cents": 50}}'), "here", "m1", AT, mine)
    assert 2.0 == cost(use(), Usage(wire='{"cost": null}'), "openrouter", "m1", AT, own(row()))
    assert 2.0 == cost(use(), Usage(wire="[]"), "openrouter", "m1", AT, own(row()))


def test_a_sum_says_how_much_of_it_is_known() -> None:
    """Nobody takes a part for the whole."""

    def step(model: str) -> StepUse:
        return StepUse("c", 1, AT, model, "", use(), place="here")

    assert Cost(4.0, 2, 1) == cost_of([step("m1"), step("other"), step("m2")], own(row()))
    assert Cost(0, 0, 0) == cost_of([], NONE)


def test_a_summary_costs_what_its_writer_does() -> None:
    """Its model is said together with the endpoint."""
    step = StepUse("c", 1, AT, "here/m1", "", use(), "summary")
    assert Cost(2.0, 1, 0) == cost_of([step], own(row(endpoints=("here",))))


def test_every_price_of_ours_is_dated_sourced_and_of_an_endpoint_that_there_is() -> None:
    """Prices are facts about others; what was imported has its program in place of an endpoint."""
    known = {endpoint.id for endpoint in rules.endpoints()} | {*MODULES}
    for price in packaged().price:
        assert known >= set(price.endpoints)
        assert datetime.date.fromisoformat(price.since) <= datetime.date(2026, 11, 21)
        assert price.source
        assert 0 < price.input < price.output
        assert price.cached is None or 0 < price.cached < price.input
    assert all(known >= set(reported.endpoints) and reported.source for reported in packaged().reported)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[price]]\nmodels = 3", r"prices\.toml: price\[0\]\.models: Expected `array`"),
        ("[[price]]", r"prices\.toml: price\[0\]: Object missing required field"),
        ("[[prise]]", r"prices\.toml: Object contains unknown field `prise`"),
        ("=", r"prices\.toml: not valid TOML"),
    ],
)
def test_a_price_file_with_a_fault_says_where(text: str, reason: str) -> None:
    """File, key and reason."""
    with pytest.raises(RuleFileError, match=reason):
        read("prices.toml", text)
