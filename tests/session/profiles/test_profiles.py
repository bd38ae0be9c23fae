"""Profiles of a session: saved, loaded, read live, and never half of one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import thinkback
from tests.session.chats import DEFINITION, KEY, PERSONAS, open_session, refusals
from thinkback.errors import CredentialError, NotFoundError, RuleFileError, SettingError, ThinkbackError
from thinkback.session.session import Session
from thinkback.session.store import SessionStore
from thinkback_referee import Referee

REASONING = {
    "reasoning.enabled": True,
    "reasoning.includeInContext": False,
    "reasoning.includeInResponse": False,
    "reasoning.effort": "high",
    "reasoning.maxTokens": "default",
    "reasoning.format": "native",
    "reasoning.stripFromContext": "allButLast",
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty configuration directory, and keys of both personas in the environment."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("DEEPSEEK_API_KEY", "MOONSHOT_API_KEY", "WORK_KEY"):
        monkeypatch.setenv(name, f"{KEY}-{name}")
    return tmp_path / "config"


def write(place: Path, name: str, text: str) -> Path:
    """The profile ``name`` as a person writes it."""
    path = place / "profiles" / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def at(referee: Referee, host: str, more: str = "") -> str:
    """The text of a profile that leads to a persona of the referee."""
    return f'endpoint = "{host}"\nmodel = "{PERSONAS[host]}"\nbase_url = "{referee.base_url(host)}"\n{more}'


def where(session: Session) -> tuple[str, str]:
    """Endpoint and model of the next request."""
    return session.target.endpoint.id, session.target.model


def test_what_was_set_is_saved_and_comes_back(store: SessionStore, referee: Referee) -> None:
    """place and every explicit reasoning setting; what was not set stays unset."""
    session = open_session(store, referee, api_key=None)
    for key, value in REASONING.items():
        session.set(key, value)
    path = session.profiles.save("work")
    other = store.session("other", profile="work")
    assert where(session) == where(other)
    assert {key: session.layers.origin(key).value for key in REASONING} == {
        key: other.layers.origin(key).value for key in REASONING
    }
    assert {"profile"} == {other.layers.origin(key).layer for key in REASONING}
    assert ("drop", "built-in") == other.layers.origin("reasoning.foreign")
    assert (None, "profile") == other.layers.origin("reasoning.maxTokens")
    assert KEY not in path.read_text()


def test_a_saved_profile_is_private_and_keeps_comments(store: SessionStore, referee: Referee, place: Path) -> None:
    """Saving over a file replaces values; nobody else may read it."""
    path = write(place, "work", at(referee, "deepseek", "# why\n[reasoning]\neffort = 'low' # enough\nkeepLast = 1\n"))
    session = store.session("one", profile="work")
    session.set("reasoning.effort", "high")
    session.unset("session.profile")
    assert path == session.profiles.save("work")
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    text = path.read_text()
    assert ("# why" in text, "# enough" in text, "keepLast" in text) == (True, True, False)
    assert [path] == list(path.parent.iterdir())


def test_what_a_loaded_profile_says_is_saved_with_the_next(store: SessionStore, referee: Referee, place: Path) -> None:
    """A profile that was changed in the session is saved whole under another name."""
    write(place, "work", at(referee, "deepseek", "[reasoning]\neffort = 'low'\nkeepLast = 1\n"))
    session = store.session("one", profile="work")
    session.set("reasoning.effort", "high")
    session.profiles.save("more")
    other = store.session("two", profile="more")
    assert ("high", 1) == (other.settings.effort, other.settings.keep_last)


def test_loading_takes_effect_at_once(store: SessionStore, referee: Referee, place: Path) -> None:
    """Settings, endpoint and model of the next request are those of the profile."""
    write(place, "kimi", at(referee, "kimi", "[reasoning]\nincludeInResponse = false\n"))
    session = open_session(store, referee)
    session.chat("Hello.")
    session.profiles.load("kimi")
    assert ("kimi", PERSONAS["kimi"]) == where(session)
    assert not session.settings.include_in_response
    assert "completed" == session.chat("Hello again.").state
    assert ([], PERSONAS["kimi"]) == (refusals(referee), referee.requests[-1].body["model"])


def test_loading_within_an_open_tool_loop(store: SessionStore, referee: Referee, place: Path) -> None:
    """The next request of the loop goes where the profile says, and is taken there."""
    write(place, "kimi", at(referee, "kimi"))
    session = open_session(store, referee)
    reply = session.chat("Weather in Oslo?", tools=[DEFINITION])
    session.set("session.profile", "kimi")
    assert "completed" == session.generate({reply.tool_calls[0].id: "sun"}).state
    assert ([], PERSONAS["kimi"]) == (refusals(referee), referee.requests[-1].body["model"])


def test_several_are_combined_and_the_later_one_wins(store: SessionStore, referee: Referee, place: Path) -> None:
    """One for the place and one for the settings."""
    write(place, "where", at(referee, "deepseek", "[reasoning]\neffort = 'low'\nkeepLast = 3\n"))
    write(place, "deep", "[reasoning]\neffort = 'high'\n")
    session = store.session("one")
    session.profiles.load("where", "deep")
    assert ("high", 3) == (session.settings.effort, session.settings.keep_last)
    assert ("where,deep", "session") == session.layers.origin("session.profile")


def test_a_profile_may_say_a_model_or_a_key_alone(store: SessionStore, referee: Referee, place: Path) -> None:
    """The rest stays as it is: endpoint, address, and the key where it says none."""
    write(place, "flash", 'model = "deepseek-v4-flash"\n')
    write(place, "paid", 'key_env = "WORK_KEY"\n')
    session = open_session(store, referee)
    session.profiles.load("flash")
    assert ("deepseek", "deepseek-v4-flash") == where(session)
    assert f"Bearer {KEY}" == session.wire.plan("Hello.").headers["Authorization"]
    session.profiles.load("flash", "paid")
    assert f"Bearer {KEY}-WORK_KEY" == session.wire.plan().headers["Authorization"]
    assert ("deepseek", "deepseek-v4-flash") == where(session)


def test_a_file_of_other_letters_is_told(store: SessionStore, place: Path) -> None:
    """Bytes that are no text are a fault of the file."""
    write(place, "work", "").write_bytes(b"\xff")
    with pytest.raises(RuleFileError, match="not UTF-8"):
        store.session("one", profile="work")


def test_a_session_beats_its_profile_and_a_profile_the_user(store: SessionStore, referee: Referee, place: Path) -> None:
    """The layers are where they should be."""
    write(place, "work", at(referee, "deepseek", "[reasoning]\neffort = 'low'\nkeepLast = 3\n"))
    (place / "settings.toml").write_text("[reasoning]\neffort = 'max'\nkeepLast = 9\nforeign = 'text'\n")
    session = store.session("one", profile="work")
    session.set("reasoning.effort", "high")
    settings = session.settings
    assert ("high", 3, "text") == (settings.effort, settings.keep_last, settings.foreign)


def test_an_edited_file_counts_at_once(store: SessionStore, referee: Referee, place: Path) -> None:
    """The next request reads it, settings and place alike; in between the session's own word on the place holds."""
    write(place, "work", at(referee, "deepseek", "[reasoning]\neffort = 'low'\n"))
    session = store.session("one", profile="work")
    session.chat("Hello.")
    write(place, "work", at(referee, "deepseek", "[reasoning]\neffort = 'high'\n"))
    session.use(model="deepseek-v4-flash")
    session.chat("Hello.")
    assert ["low", "high"] == [exchange.body["reasoning_effort"] for exchange in referee.requests]
    assert "deepseek-v4-flash" == referee.requests[-1].body["model"]
    write(place, "work", at(referee, "kimi"))
    assert ("kimi", PERSONAS["kimi"]) == where(session)


def test_a_resumed_session_has_its_profile(tmp_path: Path, referee: Referee, place: Path) -> None:
    """It is kept with the session: nobody need name endpoint or model again."""
    write(place, "work", at(referee, "deepseek"))
    with thinkback.open(tmp_path / "log.db") as store:
        store.session("one", profile="work").chat("Hello.")
    with thinkback.open(tmp_path / "log.db") as store:
        session = store.session("one")
        assert ("deepseek", PERSONAS["deepseek"]) == where(session)
        assert "completed" == session.chat("Hello again.").state
    assert [] == refusals(referee)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", NotFoundError),
        ("endpoint = 'nowhere'\nmodel = 'm'", NotFoundError),
        ("[reasoning]\neffort = 'huge'", RuleFileError),
        ("endpoint = ", RuleFileError),
        ("endpoint = 'deepseek'\nmodel = 'm'\nbase_url = 'ftp://a'", SettingError),
    ],
)
def test_what_is_wrong_with_a_profile_changes_nothing(
    store: SessionStore, referee: Referee, place: Path, text: str, error: type[ThinkbackError]
) -> None:
    """Loading is all or nothing: place, settings and the profile before it are as they were."""
    write(place, "good", at(referee, "deepseek", "[reasoning]\neffort = 'low'\n"))
    if text:
        write(place, "bad", text)
    session = store.session("one", profile="good")
    for names in (["bad"], ["good", "bad"]):
        with pytest.raises(error):
            session.profiles.load(*names)
        with pytest.raises(error):
            store.session("two", profile=",".join(names))
    assert (("deepseek", PERSONAS["deepseek"]), "low") == (where(session), session.settings.effort)
    assert "good" == session.settings.profile
    assert ["one"] == [info.name for info in store.sessions()]


def test_a_profile_that_vanished_or_broke_is_named_before_anything_is_stored(
    store: SessionStore, referee: Referee, place: Path
) -> None:
    """The turn is refused with what to do; once the file is mended the session goes on."""
    path = write(place, "work", at(referee, "deepseek"))
    session = store.session("one", profile="work")
    path.rename(path.with_suffix(".away"))
    with pytest.raises(NotFoundError, match="there is no profile work") as caught:
        session.chat("Hello.")
    assert "unset session.profile" in str(caught.value)
    path.write_text("model = 5\n")
    with pytest.raises(RuleFileError, match="model: it must be text"):
        session.chat("Hello.")
    assert [] == session.log()
    path.with_suffix(".away").rename(path)
    assert "completed" == session.chat("Hello.").state
    path.unlink()
    session.unset("session.profile")
    assert "completed" == session.chat("Hello.").state


def test_the_default_profile_is_followed_by_who_has_none(store: SessionStore, referee: Referee, place: Path) -> None:
    """It stands in the settings file, whose comments stay; a session may silence it."""
    write(place, "work", at(referee, "deepseek", "[reasoning]\neffort = 'low'\n"))
    write(place, "other", at(referee, "kimi"))
    (place / "settings.toml").write_text("# mine\n[reasoning]\nkeepLast = 2 # two\n")
    (place / "settings.toml").chmod(0o644)
    session = store.session("one")
    path = session.profiles.default("work")
    assert path.read_text().startswith("# mine\n[reasoning]\nkeepLast = 2 # two\n")
    assert 0o644 == stat.S_IMODE(path.stat().st_mode)
    assert (("deepseek", PERSONAS["deepseek"]), "low") == (where(session), session.settings.effort)
    assert ("kimi", PERSONAS["kimi"]) == where(store.session("two", profile="other"))
    session.set("session.profile", "default")
    assert (None, 2) == (session.settings.effort, session.settings.keep_last)
    with pytest.raises(SettingError, match="work is the default"):
        session.profiles.delete("work")
    session.profiles.default()
    session.profiles.delete("work")
    assert ["other"] == session.profiles.list()


def test_a_place_that_is_given_beats_the_default_profile(store: SessionStore, referee: Referee, place: Path) -> None:
    """Whoever says an endpoint goes there; what the profile says of a model elsewhere is not for it."""
    write(place, "work", at(referee, "deepseek", "key_env = 'WORK_KEY'\n"))
    (place / "settings.toml").write_text("[session]\nprofile = 'work'\n")
    assert ("kimi", PERSONAS["kimi"]) == where(open_session(store, referee, "kimi", "a"))
    with pytest.raises(NotFoundError, match="no model was given"):
        store.session("b", endpoint="groq").chat("Hello.")
    same = store.session("c", endpoint="deepseek", base_url=referee.base_url("deepseek"))
    assert ("deepseek", PERSONAS["deepseek"]) == where(same)
    other = store.session("d", model="deepseek-v4-flash")
    assert ("deepseek", "deepseek-v4-flash") == where(other)
    assert f"Bearer {KEY}-WORK_KEY" == other.wire.plan("Hello.").headers["Authorization"]


@pytest.mark.parametrize("name", ["../settings", "/etc/passwd", "a/b", "", "default", "..", "a\n"])
def test_a_name_is_never_a_path(store: SessionStore, referee: Referee, place: Path, name: str) -> None:
    """Neither read, written nor deleted."""
    session = open_session(store, referee)
    for use in (session.profiles.save, session.profiles.load, session.profiles.delete, session.profiles.default):
        with pytest.raises(SettingError, match="cannot be the name of a profile"):
            use(name)
    assert not place.exists()


def test_a_key_goes_by_its_name_to_the_host_it_is_for(store: SessionStore, referee: Referee, place: Path) -> None:
    """``key_env`` is read at each request; another endpoint gets its own key, and no file or log holds either."""
    write(place, "work", at(referee, "deepseek", "key_env = 'WORK_KEY'\n"))
    session = store.session("one", profile="work", api_key=None)
    plan = session.wire.plan("Hello.")
    assert f"Bearer {KEY}-WORK_KEY" == plan.headers["Authorization"]
    session.use(endpoint="kimi", model=PERSONAS["kimi"], base_url=referee.base_url("kimi"))
    assert f"Bearer {KEY}-MOONSHOT_API_KEY" == session.wire.plan().headers["Authorization"]


def test_a_key_that_is_missing_is_told_by_its_name(
    store: SessionStore, referee: Referee, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint's own variable does not stand in for the one that was named."""
    write(place, "work", at(referee, "deepseek", "key_env = 'NOT_SET'\n"))
    session = store.session("one", profile="work")
    with pytest.raises(CredentialError, match="NOT_SET"):
        session.chat("Hello.")
    assert [] == session.log()


def test_a_broken_file_is_not_saved_over(store: SessionStore, referee: Referee, place: Path) -> None:
    """What somebody wrote and mistyped is not lost."""
    path = write(place, "work", "endpoint = \n# long thoughts\n")
    session = open_session(store, referee)
    with pytest.raises(RuleFileError, match="was not saved"):
        session.profiles.save("work")
    assert "# long thoughts" in path.read_text()


def test_a_default_that_cannot_be_written_is_told(store: SessionStore, referee: Referee, place: Path) -> None:
    """With what to write by hand, and with no draft left behind."""
    write(place, "work", at(referee, "deepseek"))
    (place / "settings.toml").mkdir()
    with pytest.raises(ThinkbackError, match="cannot be written") as caught:
        open_session(store, referee).profiles.default("work")
    assert 'under [session] write: profile = "work"' in str(caught.value)
    assert ["profiles", "settings.toml"] == sorted(path.name for path in place.iterdir())


def test_the_default_of_a_program_with_settings_of_its_own_is_not_written(referee: Referee, place: Path) -> None:
    """It does not read the file, so that writing it would change nothing."""
    write(place, "work", at(referee, "deepseek"))
    with thinkback.open(":memory:", settings={}) as store, pytest.raises(SettingError, match="cannot be set"):
        store.session("one").profiles.default("work")
    assert not (place / "settings.toml").exists()


def test_loading_nothing_is_told(store: SessionStore) -> None:
    """To follow no profile is said otherwise."""
    with pytest.raises(SettingError, match="no profile is named"):
        store.session("one").profiles.load()
