"""What is said of settings: what a value may be, errors and completion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.errors import RuleFileError, SettingError
from thinkback.settings import KEYS, Key, Layers, complete, find, parse, parse_user_file, percentages, to_text
from thinkback.settings.registry import ELSEWHERE, LARGEST, Value
from thinkback.settings.values import PARSERS

NAMES = st.sampled_from(sorted(KEYS))
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def values_of(key: Key) -> st.SearchStrategy[Value]:
    """Every value that ``key`` may have."""
    if key.type == "boolean":
        return st.booleans()
    if key.type == "percentages":
        rising = st.lists(st.integers(1, 100), min_size=3, max_size=3, unique=True).map(sorted)
        return rising.map(lambda numbers: "/".join(map(str, numbers)))
    if key.type == "rules":
        return st.sampled_from(["shell=ask", "write(docs/*)=allow,mcp*=deny"])
    if key.type == "names":
        return st.sampled_from(["JAVA_HOME", "HTTPS_PROXY,NO_PROXY"])
    if key.type in ("text", "field", "words"):
        return st.sampled_from(["gpt-5.5", "groq/openai/gpt-oss-120b"])
    return st.integers(key.smallest, LARGEST) if key.type == "integer" else st.sampled_from(key.choices)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("On", True), ("YES", True), (" false ", False), ("off", False), ("No", False)],
)
def test_a_boolean_is_read_from_the_usual_words(text: str, value: bool) -> None:
    """True and false have three words each, in upper and lower case."""
    assert value is parse("reasoning.enabled", text)


@pytest.mark.parametrize("raw", ["", "1", "maybe", 1, 0, None, 1.0, [True]])
def test_a_boolean_is_nothing_else(raw: object) -> None:
    """A number or an unknown word is not taken for a boolean."""
    with pytest.raises(SettingError) as caught:
        parse("reasoning.enabled", raw)
    assert {"key": "reasoning.enabled", "value": raw, "allowed": ("true", "false")} == caught.value.details


@pytest.mark.parametrize("effort", EFFORTS)
def test_every_effort_is_accepted(effort: str) -> None:
    """The seven efforts are the vocabulary, spaces around the word do not matter."""
    assert effort == parse("reasoning.effort", f" {effort} ")


@pytest.mark.parametrize("raw", ["", "High", "highest", 3, True, None])
def test_a_choice_is_exactly_one_of_its_words(raw: object) -> None:
    """A choice is told apart by case, and a number is no word."""
    with pytest.raises(SettingError) as caught:
        parse("reasoning.effort", raw)
    assert EFFORTS == caught.value.details["allowed"]


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("reasoning.maxTokens", "8", 8),
        ("reasoning.maxTokens", 8, 8),
        ("reasoning.maxTokens", " 0010 ", 10),
        ("reasoning.maxTokens", str(LARGEST), LARGEST),
        ("reasoning.keepLast", "0", 0),
        ("reasoning.keepLast", 0, 0),
    ],
)
def test_an_integer_is_read_from_digits_and_from_a_number(name: str, raw: object, value: int) -> None:
    """Text and TOML give the same integer."""
    assert value == parse(name, raw)


@pytest.mark.parametrize(
    "raw", ["0", "-1", "1_000", "1e3", "8.0", "", "\u0668", 0, -1, 8.0, True, None, LARGEST + 1, "9" * 5000]
)
def test_an_integer_is_within_its_bounds_and_plainly_written(raw: object) -> None:
    """Zero, negative, broken, endless or oddly written numbers are no token budget."""
    with pytest.raises(SettingError) as caught:
        parse("reasoning.maxTokens", raw)
    assert (f"a whole number from 1 to {LARGEST}",) == caught.value.details["allowed"]


def test_keep_last_may_not_be_negative() -> None:
    """``keepLast`` begins at zero, which means that no finished response keeps its reasoning."""
    with pytest.raises(SettingError, match="from 0 to"):
        parse("reasoning.keepLast", -1)


@pytest.mark.parametrize("raw", ["50/60/70", " 50 / 60/70 ", [50, 60, 70], ("50", 60, "70")])
def test_thresholds_are_three_rising_percentages(raw: object) -> None:
    """Text and TOML give the same thresholds."""
    assert "50/60/70" == parse("compaction.thresholds", raw)
    assert (50, 60, 70) == percentages("50/60/70")


@pytest.mark.parametrize("raw", ["", "70", "70/80", "70/80/90/95", "80/70/90", "70/70/90", "0/80/90", "70/80/101", 70])
def test_thresholds_are_nothing_else(raw: object) -> None:
    """Too few, too many, falling, equal or impossible numbers are refused with a word of what would be right."""
    with pytest.raises(SettingError, match="three rising percentages like 70/80/90"):
        parse("compaction.thresholds", raw)


def test_words_are_one_line() -> None:
    """Spaces among them, none around them; neither nothing nor very much."""
    key = find("session.title")
    assert ["Two words", None, None, None, None] == [
        PARSERS["words"](key, raw) for raw in (" Two words ", " ", "two\nlines", "x" * 81, 5)
    ]


@pytest.mark.parametrize("raw", ["", " ", "two words", "line\nbreak", 5, None, True])
def test_a_text_is_one_word(raw: object) -> None:
    """A model's name has no white space, and nothing else is a name."""
    with pytest.raises(SettingError, match="a model, or endpoint/model"):
        parse("compaction.model", raw)


def test_a_bad_value_is_refused_with_key_value_and_allowed_values() -> None:
    """ERR-001: the message tells which key, which value, and what would be right."""
    with pytest.raises(SettingError) as caught:
        parse("reasoning.format", "xml")
    assert "reasoning.format cannot be 'xml' (allowed: field, native)" == str(caught.value)
    assert {"key": "reasoning.format", "value": "xml", "allowed": ("field", "native")} == caught.value.details


@pytest.mark.parametrize("raw", ["sk-ant-api03-x1", "hunter2", "x" * 21, ["sk-1"], {"a": "sk-1"}])
def test_a_value_that_may_be_a_secret_is_not_shown(raw: object) -> None:
    """A key that was pasted into the wrong place is in no message and in no details."""
    with pytest.raises(SettingError) as caught:
        parse("reasoning.format", raw)
    assert str(raw) not in str(caught.value) + str(caught.value.details)
    assert "sk-" not in str(caught.value) + str(caught.value.details)
    assert "reasoning.format cannot be a " in str(caught.value)


def test_a_long_value_is_cut_in_the_message() -> None:
    """An error text stays readable whatever was pasted into it."""
    with pytest.raises(SettingError) as caught:
        parse("reasoning.format", "x" * 10_000)
    assert len(str(caught.value)) < 200


def test_a_number_too_long_to_print_is_named_by_its_type() -> None:
    """A number that Python refuses to print still gives the setting's own error."""
    with pytest.raises(SettingError, match="a value of type int"):
        parse("reasoning.keepLast", 1 << 20_000)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("reasoning.efort", "reasoning.effort"),
        ("reasoning.includeincontext", "reasoning.includeInContext"),
        ("keepLast", "reasoning.keepLast"),
    ],
)
def test_an_unknown_key_is_refused_with_its_nearest_names(name: str, close: str) -> None:
    """A slip in a key's name is answered by the name that was meant."""
    with pytest.raises(SettingError) as caught:
        find(name)
    assert name == caught.value.details["key"]
    assert close == caught.value.details["close_matches"][0]  # type: ignore[index]
    assert close in str(caught.value)


def test_the_last_part_of_a_key_alone_names_that_key() -> None:
    """Others that are only like it are not offered beside it."""
    with pytest.raises(SettingError) as caught:
        find("effort")
    assert ("reasoning.effort",) == caught.value.details["close_matches"]


def test_a_key_like_no_other_is_refused_with_all_names() -> None:
    """Where nothing is near, the error lists what there is."""
    with pytest.raises(SettingError) as caught:
        find("colour")
    assert () == caught.value.details["close_matches"]
    assert all(name in str(caught.value) for name in KEYS)


@pytest.mark.parametrize(
    ("prefix", "completions"),
    [
        ("", tuple(KEYS)),
        ("reasoning.in", ("reasoning.includeInContext", "reasoning.includeInResponse")),
        ("reasoning.effort", ("reasoning.effort",)),
        ("Reasoning", ()),
        ("reasoning.effort ", EFFORTS),
        ("reasoning.effort m", ("minimal", "medium", "max")),
        ("reasoning.effort   lo", ("low",)),
        ("reasoning.enabled t", ("true",)),
        ("reasoning.enabled x", ()),
        ("reasoning.keepLast ", ()),
        ("compaction.thresholds ", ()),
        ("colour b", ()),
    ],
)
def test_completion_offers_keys_and_then_values(prefix: str, completions: tuple[str, ...]) -> None:
    """Completion gives keys until a space follows one, then the words that key allows."""
    assert completions == complete(prefix)


@given(st.data(), NAMES)
def test_any_value_survives_the_way_through_text(data: st.DataObject, name: str) -> None:
    """``parse(to_text(value)) == value`` for each value a key may have, and so does the value itself."""
    value = data.draw(values_of(KEYS[name]))
    assert (value, value) == (parse(name, to_text(value)), parse(name, value))
    assert type(value) is type(parse(name, to_text(value)))


@given(NAMES, st.text() | st.integers() | st.booleans() | st.none() | st.floats() | st.lists(st.text()))
def test_anything_at_all_is_either_a_value_or_a_setting_error(name: str, raw: object) -> None:
    """No input ends in another exception, and what is accepted is accepted again."""
    try:
        value = parse(name, raw)
    except SettingError:
        return
    assert value == parse(name, to_text(value))


def test_values_are_written_as_json_but_for_texts() -> None:
    """Switches, numbers, and what a profile may list."""
    written = {
        "on": "on",
        "true": True,
        "false": False,
        "12": 12,
        "-1": -1,
        "0.5": 0.5,
        '["ä", 1]': ["ä", 1],
        "null": None,
    }
    assert list(written) == list(map(to_text, written.values()))


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("JAVA_HOME", "JAVA_HOME"),
        (" A , B_2", "A,B_2"),
        (["A", "B"], "A,B"),
        ("", None),
        ("A,", None),
        ("A=b", None),
        ("ä", None),
        ([], None),
        ([1], None),
        (7, None),
    ],
)
def test_names_of_variables_are_read_from_text_and_lists(raw: object, value: str | None) -> None:
    """One spelling for each; what cannot be the name of a variable is refused."""
    assert value == PARSERS["names"](KEYS["shell.environment"], raw)


def test_another_name_of_a_setting_is_that_setting() -> None:
    """``reasoning.budgetTokens`` is stored and shown as ``reasoning.maxTokens``, in files too."""
    layers = Layers().set("session", "reasoning.budgetTokens", "2048")
    assert {"reasoning.maxTokens": "2048"} == layers.texts("session")
    assert {"reasoning.maxTokens": 2048} == parse_user_file("f", "[reasoning]\nbudgetTokens = 2048\n")
    assert Layers() == layers.unset("session", "reasoning.budgetTokens")
    with pytest.raises(RuleFileError, match=r"reasoning\.maxTokens: it is given twice"):
        parse_user_file("f", "[reasoning]\nbudgetTokens = 2048\nmaxTokens = 1\n")


def test_names_of_another_program_are_those_of_ours() -> None:
    """A key, and a table of request fields; both names at once are refused."""
    text = "responses-stateful = true\n[modelParams]\ntemperature = 0.3\nextra.top_k = 4\n"
    ours = {"session.serverState": True, "params.temperature": 0.3, "params.extra": {"top_k": 4}}
    assert ours == parse_user_file("f", text)
    assert {"params.top_p": "0.5"} == Layers().set("session", "modelParams.top_p", 0.5).texts("session")
    with pytest.raises(RuleFileError, match=r"params\.temperature: it is given twice"):
        parse_user_file("f", "[modelParams]\ntemperature = 1\n[params]\ntemperature = 1\n")
    with pytest.raises(SettingError, match="there is no setting 'modelParams'"):
        find("modelParams")


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_what_other_programs_set_is_explained(name: str) -> None:
    """The refusal says what it is here and what to do."""
    with pytest.raises(SettingError, match=f"{name} is not a setting here: ") as caught:
        find(name)
    assert len(caught.value.next_actions) >= 2
