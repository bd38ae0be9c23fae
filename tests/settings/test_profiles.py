"""Profiles as text: what a file may say, how several become one, and that saving loses neither values nor comments."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.settings.test_values import values_of
from thinkback.errors import RuleFileError, SettingError
from thinkback.settings import KEYS, Value
from thinkback.settings.profiles import KINDS, Kind, Profile, combine, is_name, names_in, parse_profile, render

WORDS = st.from_regex(r"[a-z][a-z0-9./:-]{0,12}[a-z0-9]", fullmatch=True)
NAMES = WORDS.filter(is_name)
FILE = "work.toml"


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Any profile."""
    keys = draw(st.lists(st.sampled_from([key for key in KEYS.values() if "profile" not in key.refused_in])))
    settings = {key.name: draw(values_of(key) | st.just("default")) for key in keys}
    kind: Kind = draw(st.sampled_from(KINDS))
    if kind != "model":
        targets = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
        return Profile(kind, targets=tuple(targets), settings=settings)
    place = st.just("") | WORDS
    return Profile(kind, draw(place), draw(place), draw(place), draw(st.sampled_from(["", "MY_KEY"])), (), settings)


def refusal(text: str) -> RuleFileError:
    """What is said of ``text``."""
    with pytest.raises(RuleFileError) as caught:
        parse_profile(FILE, text)
    return caught.value


def test_a_profile_says_where_requests_go_and_with_which_settings() -> None:
    """Endpoint, model, address and the name of a key stand at the top, settings in tables as in the settings file."""
    text = """\
    endpoint = "openai"
    model = "gpt-5.5"
    base_url = "https://proxy.example/v1"
    key_env = "WORK_KEY"

    [reasoning]
    effort = "high"
    maxTokens = "default"
    """
    settings = {"reasoning.effort": "high", "reasoning.maxTokens": "default"}
    expected = Profile("model", "openai", "gpt-5.5", "https://proxy.example/v1", "WORK_KEY", (), settings)
    assert expected == parse_profile(FILE, text)


def test_a_profile_in_the_words_of_another_program() -> None:
    """LLxprt's names of a place and of settings; a profile over others names its policy and its profiles."""
    text = """\
    version = 1
    provider = "openai"
    model = "gpt-5.5"

    [modelParams]
    temperature = 0.3

    [ephemeralSettings]
    "base-url" = "https://proxy.example/v1"
    "reasoning.effort" = "high"
    "reasoning.budgetTokens" = 2048
    responses-stateful = true
    """
    settings = {
        "params.temperature": 0.3,
        "reasoning.effort": "high",
        "reasoning.maxTokens": 2048,
        "session.serverState": True,
    }
    profile = Profile("model", "openai", "gpt-5.5", "https://proxy.example/v1", settings=settings)
    assert profile == parse_profile(FILE, text)
    assert profile == parse_profile(FILE, render(profile, text))
    text = 'version = 1\ntype = "loadbalancer"\npolicy = "roundrobin"\nprofiles = ["a", "b"]\n'
    assert Profile("round-robin", targets=("a", "b")) == parse_profile(FILE, text)


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ('provider = "openai"\nendpoint = "openai"\n', "endpoint", "it is given twice"),
        ('[ephemeralSettings]\nauth-key = "k"\n', "auth-key", "a profile holds the name of a key and never a key"),
        (
            "[ephemeralSettings]\ncompression-threshold = 0.8\n",
            "compression-threshold",
            "is a percentage of the context",
        ),
        ("ephemeralSettings = 1\n", "ephemeralSettings", "there is no such key"),
        ('policy = "random"\nprofiles = ["a"]\n', "kind", "it cannot be 'random'"),
    ],
)
def test_what_another_program_s_profile_says_and_cannot_be_meant_is_named(text: str, key: str, reason: str) -> None:
    """The error has the key at fault, and what to do where that is known."""
    error = refusal(text)
    assert (key, True) == (error.details["key"], reason in error.message)


def test_an_empty_file_is_a_profile_that_says_nothing() -> None:
    """Keys that are not there stay unset."""
    assert Profile() == parse_profile(FILE, "# later\n")


@pytest.mark.parametrize("kind", ["failover", "round-robin"])
def test_a_profile_may_name_others_in_order(kind: str) -> None:
    """Such a profile has targets, and settings of its own."""
    text = f'kind = "{kind}"\ntargets = ["a", "b"]\n[text]\nverbosity = "low"'
    expected = Profile(kind, targets=("a", "b"), settings={"text.verbosity": "low"})  # type: ignore[arg-type]
    assert expected == parse_profile(FILE, text)


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ('endpont = "openai"', "endpont", "did you mean endpoint?"),
        ("zzz = 1", "zzz", "there are kind, targets, endpoint"),
        ('kind = "both"', "kind", "allowed: model, failover, round-robin"),
        ("kind = 1", "kind", "allowed"),
        ('targets = ["a"]', "targets", "only a profile of kind failover or round-robin has targets"),
        ('kind = "failover"', "targets", "list of the names"),
        ('kind = "failover"\ntargets = []', "targets", "list of the names"),
        ('kind = "failover"\ntargets = "a"', "targets", "list of the names"),
        ('kind = "failover"\ntargets = ["a", "a"]', "targets", "each once"),
        ('kind = "failover"\ntargets = ["../a"]', "targets", "names of profiles"),
        ('kind = "failover"\ntargets = [1]', "targets", "names of profiles"),
        ('kind = "failover"\ntargets = ["a"]\nmodel = "m"', "model", "from its targets"),
        ("endpoint = 5", "endpoint", "text without spaces"),
        ('model = ""', "model", "text without spaces"),
        ('model = "a b"', "model", "text without spaces"),
        ('base_url = "a\\u0000"', "base_url", "text without spaces"),
        ("[reasoning]\neffort = 'huge'", "reasoning.effort", "allowed: none, minimal"),
        ("[reasoning]\ncolour = 1", "reasoning.colour", "there is no setting"),
        ("api_key = 'x'", "api_key", "there is no such key"),
        ("[session]\nprofile = 'other'", "session.profile", "cannot be set in a profile"),
        ("reasoning.effort = 'low'\n'reasoning.effort' = 'high'", "reasoning.effort", "given twice"),
    ],
)
def test_a_fault_is_told_with_file_key_and_reason(text: str, key: str, reason: str) -> None:
    """A file that cannot be meant is refused, and the error says where and why."""
    error = refusal(text)
    assert (FILE, key) == (error.details["file"], error.details["key"])
    assert f"{FILE}: {key}: " in error.message
    assert reason in error.message


def test_text_that_is_no_toml_is_told_with_its_line() -> None:
    """A slip of the pen is found again."""
    assert 2 == refusal('model = "m"\nmodel = ').details["line"]


def test_a_key_in_place_of_its_name_is_refused_and_not_repeated() -> None:
    """Who pastes the key itself is told so, and the error holds no part of it."""
    error = refusal('key_env = "sk-verysecret-1"')
    assert "verysecret" not in str(error)
    assert "thinkback keys set" in str(error)


@pytest.mark.parametrize("name", ["a", "work", "gpt-5.5", "A_b.c-1", "x" * 64])
def test_such_a_name_is_a_files_name_everywhere(name: str) -> None:
    """Letters, digits, and the three signs between them."""
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../a", "a\\b", "a.", ".a", "-a", "a b", "a\n", "x" * 65, "default", "ä", "a,b", "~"]
)
def test_other_names_are_refused(name: str) -> None:
    """Nothing that is a path, hidden, taken for an option, or that some file system spells otherwise."""
    assert not is_name(name)


@pytest.mark.parametrize(("text", "names"), [("", ()), ("a", ("a",)), ("a,b", ("a", "b")), (" a , b,", ("a", "b"))])
def test_names_stand_in_a_setting_with_commas(text: str, names: tuple[str, ...]) -> None:
    """The setting session.profile holds several names in order."""
    assert names == names_in(text)


def test_of_several_profiles_the_later_one_wins() -> None:
    """What one leaves open another may say; what both say is said by the later one."""
    first = Profile(endpoint="openai", model="a", settings={"reasoning.effort": "low", "context.size": 3})
    second = Profile(model="b", settings={"reasoning.effort": "high"})
    expected = Profile("model", "openai", "b", settings={"reasoning.effort": "high", "context.size": 3})
    assert expected == combine({"first": first, "second": second})


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (Profile(endpoint="groq"), Profile(endpoint="groq", model="m")),
        (Profile(base_url="https://b"), Profile(endpoint="openai", model="m", base_url="https://b")),
        (Profile(endpoint="openai"), Profile("model", "openai", "m", "https://a", "KEY")),
        (Profile(endpoint="groq", key_env="K"), Profile("model", "groq", "m", "", "K")),
    ],
)
def test_an_address_and_a_key_stay_with_the_host_they_are_for(second: Profile, expected: Profile) -> None:
    """A later profile that goes elsewhere takes no key along."""
    first = Profile("model", "openai", "m", "https://a", "KEY")
    assert expected == combine({"first": first, "second": second})


def test_profiles_of_different_kinds_are_not_combined() -> None:
    """A profile that says where requests go, and one that names such profiles, would contradict each other."""
    with pytest.raises(SettingError, match="b is of kind failover, a of kind model"):
        combine({"a": Profile(model="m"), "b": Profile("failover", targets=("a",))})


def test_the_later_targets_win() -> None:
    """Profiles of one kind that name others are combined like the rest."""
    one, two = (Profile("failover", targets=targets) for targets in (("a", "b"), ("c",)))
    assert two == combine({"one": one, "two": two})


def test_no_profile_says_nothing() -> None:
    """Nothing combined is nothing said."""
    assert Profile() == combine({})


def test_saving_over_a_file_keeps_its_comments() -> None:
    """What a person wrote beside the values stays, also where values change or come to it."""
    old = """\
# for work
model = "a"  # the cheap one

# thinking
[reasoning]
effort = "low"  # enough
keepLast = 2

[context]
size = 4
"""
    expected = """\
# for work
model = "b"  # the cheap one

# thinking
[reasoning]
effort = "high"  # enough
enabled = true

[context]
size = 4

[text]
verbosity = "low"
"""
    settings: dict[str, Value] = {
        "reasoning.effort": "high",
        "reasoning.enabled": True,
        "context.size": 4,
        "text.verbosity": "low",
    }
    assert expected.split() == render(Profile(model="b", settings=settings), old).split()


def test_keys_that_stand_apart_are_gathered() -> None:
    """A group that is written in pieces between others is written in one, and comments of whole lines stay."""
    old = 'reasoning.effort = "low"\n# why\ntext.verbosity = "low"\nreasoning.enabled = true\n'
    settings: dict[str, Value] = {"reasoning.effort": "high", "text.verbosity": "low", "reasoning.enabled": True}
    text = render(Profile(settings=settings), old)
    assert text.startswith("# why\n")
    assert Profile(settings=settings) == parse_profile(FILE, text)


def test_text_that_is_no_toml_is_not_written_over() -> None:
    """What cannot be read is not lost."""
    with pytest.raises(RuleFileError, match="not valid TOML"):
        render(Profile(), "model = ")


@given(profiles())
def test_a_profile_survives_its_file(profile: Profile) -> None:
    """what was set explicitly comes back as it was, and what was not stays unset."""
    text = render(profile)
    assert profile == parse_profile(FILE, text)
    assert text == render(profile, text)


@given(profiles(), profiles(), st.booleans())
def test_a_profile_takes_the_place_of_any_other(old: Profile, profile: Profile, flat: bool) -> None:
    """Whatever a file said before, in tables or with dotted keys, it then says what was saved."""
    before = render(old)
    if flat:
        before = "".join(f"{line}\n" for line in flattened(before))
    assert profile == parse_profile(FILE, render(profile, before))


def flattened(text: str) -> list[str]:
    """The lines of ``text`` with every setting as a quoted or dotted key of the top."""
    lines = []
    for at, (key, value) in enumerate(tomllib.loads(text).items()):
        inner = value if isinstance(value, dict) else {"": value}
        for name, found in inner.items():
            whole = f"{key}.{name}" if name else key
            shown = str(found).lower() if isinstance(found, bool) else repr(found)
            lines.append(f'"{whole}" = {shown}' if at % 2 else f"{whole} = {shown}")
    return lines


def test_a_profile_keeps_request_fields() -> None:
    """Fields of any JSON type are written and read back, nested tables and dotted names alike."""
    text = 'model = "m"\n[params]\ntemperature = 0.3\nstop = ["a", "b"]\n[params.thinking]\ntype = "enabled"\n'
    profile = parse_profile(FILE, text)
    fields = {"temperature": 0.3, "stop": ["a", "b"], "thinking": {"type": "enabled"}}
    assert {f"params.{name}": value for name, value in fields.items()} == profile.settings
    assert profile == parse_profile(FILE, render(profile)) == parse_profile(FILE, render(profile, text))
    dotted = Profile(settings={"params.thinking.budget_tokens": 2048})
    assert dotted == parse_profile(FILE, render(dotted))
