"""Rule updates: what a file may hold, where its rows stand, and which of them stay out."""

from __future__ import annotations

import re

import pytest

from thinkback.errors import RuleFileError
from thinkback.rules import load_rulebook, packaged
from thinkback.rules.book import endpoint_ids
from thinkback.rules.updates import MOST_BYTES, Layer, checked, origin, stacked

TODAY = "2026-12-05"
HEAD = 'date = "2026-12-01"\nsource = "a release"\n'
RULE = '[[rule]]\nid = "vllm"\nlike = "vllm"\nsince = "2026-11-25"\nsource = "its notes"\nfield = "thoughts"\n'
NEW = '[[rule]]\nid = "vllm-new"\nendpoint = "vllm"\nmodel = ["new-*", "other-*"]\nsince = "2026-11-25"\nsource = "s"\n'
MODEL = '[[model]]\nmodel = "new-*"\nendpoint = "vllm"\ncontext = 7\nsince = "2026-11-25"\nsource = "s"\n'
SERVED = '[[served]]\nendpoint = ["vllm"]\nmodels = ["new-1"]\nsince = "2026-11-25"\nsource = "s"\n'


def refusal(text: str, today: str = TODAY) -> str:
    with pytest.raises(RuleFileError) as caught:
        checked("u.toml", text, Layer(), endpoint_ids(), today)
    return caught.value.message


def test_rows_of_an_update_lie_on_those_of_the_package() -> None:
    """A row replaces the one with its id, others are added; the source names the update."""
    text = HEAD + RULE + NEW + 'refusals = ["(thought|think)ing"]\n' + MODEL + SERVED
    assert ["vllm", "vllm-new"] == [row.id for row in checked("u", text, Layer(), endpoint_ids(), TODAY).rule]
    book = load_rulebook({}, {"1": text})
    rule = book.rule_for("vllm", "m", TODAY)[0]
    shipped = packaged.rule("vllm")
    assert shipped is not None
    assert ("thoughts", shipped.controls) == (rule.field, shipped.controls)
    assert ("its notes", "2026-12-01: a release") == origin(rule.source)
    assert ("its notes", "") == origin("its notes")
    assert "vllm-new" == book.rule_for("vllm", "new-1", TODAY)[0].id
    assert 7 == book.model_info("vllm", "new-1", TODAY).context
    assert "new-1" in book.served("vllm")


def test_a_later_update_lies_on_an_earlier_one() -> None:
    """It takes what it does not say from the row of the earlier one, and older rows of it stay out."""
    second = HEAD + RULE.replace("field", "dummy") + MODEL.replace("7", "8")
    book = load_rulebook({}, {"1": HEAD + RULE + MODEL, "2": second})
    rule = book.rule_for("vllm", "m", TODAY)[0]
    assert ("thoughts", "thoughts") == (rule.field, rule.dummy)
    assert 8 == book.model_info("vllm", "new-1", TODAY).context
    older = stacked({"1": HEAD + RULE, "2": HEAD + RULE.replace("11-25", "11-24")}, endpoint_ids)
    assert ("rule vllm is of 2026-11-24, and the row that is there of 2026-11-25",) == older.updates[1].left_out


def test_a_persons_own_rows_win() -> None:
    """By the name of the row, by its pattern however old, and for a model; the rest of the update holds."""
    own = 'source = "me"\nsince = "2026-01-01"\n'
    files = {
        "r": f'[[rule]]\nid = "vllm"\nlike = "vllm"\nplaceholder = "-"\n{own}'
        f'[[rule]]\nid = "mine"\nendpoint = "vllm"\nmodel = ["new-*"]\n{own}'
        '[[model]]\nmodel = "new-*"\nendpoint = "vllm"\ncontext = 9\nsource = "me"\n'
    }
    book = load_rulebook(files, {"1": HEAD + RULE + NEW + MODEL})
    rule = book.rule_for("vllm", "m", TODAY)[0]
    assert ("me", "-", "thoughts") == (rule.source, rule.placeholder, rule.field)
    assert ["mine", "vllm-new"] == [book.rule_for("vllm", model, TODAY)[0].id for model in ("new-1", "other-1")]
    assert 9 == book.model_info("vllm", "new-1", TODAY).context
    whole = {"r": f'[[rule]]\nid = "mine"\nendpoint = "vllm"\nmodel = ["new-*", "other-*"]\n{own}'}
    assert "vllm-new" not in {row.id for row in load_rulebook(whole, {"1": HEAD + NEW}).rules()}


def test_rows_that_the_package_has_newer_or_no_longer_has_a_place_for_stay_out() -> None:
    """Both are said with why; neither is an error, so that an upgrade leaves nothing broken."""
    shipped = packaged.rule("vllm")
    assert shipped is not None
    info = next(row for row in packaged.models() if row.since)
    old = f'[[model]]\nmodel = "{info.model}"\nendpoint = "{info.endpoint}"\nsince = "2020-01-01"\nsource = "s"\n'
    gone = NEW.replace('"vllm"', '"gone"') + SERVED.replace('"vllm"', '"gone"')
    layer = stacked({"1": HEAD + RULE.replace("2026-11-25", "2020-01-01") + old + gone}, endpoint_ids)
    (update,) = layer.updates
    assert (0, {}, (), ()) == (update.rows, dict(layer.rules), layer.models, layer.served)
    rule, other, model, served = update.left_out
    assert f"rule vllm is of 2020-01-01, and the row that is there of {shipped.since}" == rule
    assert model.startswith(f"model {info.model} is of 2020-01-01, and the row that is there of {info.since[:2]}")
    assert "rule vllm-new is for gone, which this version does not have" == other
    assert "a list of models is for gone, which this version does not have" == served


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            HEAD + RULE + '[[endpoint]]\nid = "openai"\nname = "x"\nbase_url = "https://evil"\n',
            "line 9: endpoint: an up",
        ),
        (HEAD + RULE + "= 3\n", "line 9: not valid TOML"),
        (HEAD + RULE + NEW + "colour = 3\n", "line 9: rule[1].colour: is not a key"),
        (HEAD + NEW.replace('vllm"\nmodel', 'nowhere"\nmodel'), "line 3: rule[0].endpoint: no endpoint has the id"),
        (HEAD + NEW + NEW, "line 9: rule[1].id: rule vllm-new is given twice"),
        (HEAD + RULE + 'form = "none"\nopen_turn = "must"\n', "line 3: rule[0].form: "),
        (HEAD + RULE.replace("11-25", "12-02"), "line 3: rule[0].since: '2026-12-02' is not a day up to"),
        (HEAD + MODEL.replace('since = "2026-11-25"\n', ""), "line 3: model[0].since: '' is not a day"),
        (HEAD + NEW + 'refusals = ["(a+)+$"]\n', "line 3: rule[0].refusals[0]: a group that is repeated"),
        (HEAD.replace("12-01", "12-06") + RULE, "line 1: date: '2026-12-06' is not a date"),
        (HEAD.replace("a release", " ") + RULE, "line 2: source: say where"),
        (HEAD, "u.toml: an update has between one and 500 rows"),
        (RULE, "u.toml: date: is required"),
        (HEAD + "#" * MOST_BYTES, "an update has at most 256 KiB"),
        (HEAD + "rule = " + "[" * 9999, "not valid TOML"),
        (f'{HEAD}rule = [{{id = "x"}}]\n', "u.toml: rule[0].endpoint: is required"),
    ],
)
def test_a_broken_or_hostile_file_is_refused_with_line_and_reason(text: str, reason: str) -> None:
    """Whatever one row has wrong refuses the file."""
    assert reason in refusal(text)


def test_a_kept_update_that_is_no_longer_understood_names_the_way_back() -> None:
    """It is an error, as with a person's own file."""
    with pytest.raises(RuleFileError) as caught:
        load_rulebook({}, {"0001.toml": HEAD + RULE.replace('like = "vllm"', 'like = "gone"')})
    assert re.search(r"0001.toml: rule\[0\].like: .*\n  - `thinkback rules undo`", str(caught.value))
