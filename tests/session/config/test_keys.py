"""Where keys are kept: looked up in order, never where others can read them, and shown nowhere."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

import thinkback
from tests.session.chats import get_weather
from tests.session.keyrings import FileKeyring
from thinkback.cli import terminal
from thinkback.errors import CredentialError, NotFoundError, ProviderError, RuleFileError, SettingError
from thinkback.rules import load_rulebook
from thinkback.session.config import keys
from thinkback_referee import HttpError, Referee, Step

NAME = "DEEPSEEK_API_KEY"
SECRET = "sk-kept-where-nobody-looks"
RULES = load_rulebook({})


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty configuration directory, an empty keyring, and nothing known from before."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("TEST_KEYRING", str(tmp_path / "keyring.json"))
    before = keyring.get_keyring()
    keyring.set_keyring(FileKeyring())  # type: ignore[no-untyped-call]
    keys.seen.clear()
    keys._asked.clear()
    yield tmp_path / "config"
    keyring.set_keyring(before)
    keys.seen.clear()
    keys._asked.clear()


def find(endpoint: str = "deepseek", name: str = "") -> str | None:
    """The key for an endpoint of the catalogue."""
    return keys.of_endpoint(RULES.endpoint(endpoint), None, name)


def test_the_order_is_environment_file_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearer one wins; when it goes the next is found."""
    assert find() is None
    keyring.set_password("thinkback", NAME, "of-the-keyring")
    keys._asked.clear()
    assert "of-the-keyring" == find()
    keys.keep(NAME, "of-the-file")
    assert "of-the-file" == find()
    monkeypatch.setenv(NAME, "of-the-environment")
    assert "of-the-environment" == find()
    monkeypatch.delenv(NAME)
    keys.remove(NAME)
    assert "of-the-keyring" == find()


def test_a_key_that_is_given_needs_no_look(place: Path) -> None:
    """Not even at a file that is none."""
    place.mkdir()
    (place / "keys.toml").write_text("broken")
    assert "given" == keys.of_endpoint(RULES.endpoint("deepseek"), " given ")


def test_endpoints_of_one_provider_share_a_key() -> None:
    """It goes by the name of the variable, which they have in common; a name of one's own is another key."""
    keys.keep("OPENAI_API_KEY", SECRET)
    keys.keep("WORK_KEY", "for-work", in_keyring=True)
    assert (SECRET, SECRET) == (find("openai"), find("openai-chat"))
    assert ("for-work", None) == (find("openai", "WORK_KEY"), find("openai", "OTHER_KEY"))


def test_the_file_is_private_and_keeps_its_comments(place: Path) -> None:
    """Only its owner may read it, and what a person wrote into it stays."""
    file = keys.keep(NAME, f" {SECRET}\n")
    assert (place / "keys.toml", 0o600) == (file, stat.S_IMODE(file.stat().st_mode))
    file.write_text(f"# mine\n{file.read_text()}")
    keys.keep("OTHER_KEY", "x" * 9, in_keyring=True)
    assert file.read_text().startswith("# mine\n")
    assert "x" * 9 not in file.read_text()
    assert {NAME: "file", "OTHER_KEY": "keyring"} == keys.places([NAME])
    keys.remove(NAME)
    keys.remove("OTHER_KEY")
    assert ({}, None) == (keys.places([NAME]), keyring.get_password("thinkback", "OTHER_KEY"))
    with pytest.raises(NotFoundError):
        keys.remove(NAME)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_a_file_that_others_may_read_is_refused(place: Path, mode: int) -> None:
    """Loudly, and also for writing: the keys in it may be known to others by now."""
    keys.keep(NAME, SECRET).chmod(mode)
    for use in (find, lambda: keys.keep("OTHER_KEY", SECRET), lambda: keys.remove(NAME), lambda: keys.places([])):
        with pytest.raises(CredentialError, match="others may read it") as caught:
            use()
        assert "chmod 600" in str(caught.value)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"[keys]\n{NAME} = '{SECRET}",
        f"[keys]\n{NAME} = ['{SECRET}']",
        f"keys = '{SECRET}'",
        f"{NAME} = '{SECRET}'",
        f"keyring = '{SECRET}'",
        f"keyring = [['{SECRET}']]",
        f"'{SECRET}' = '{NAME}'",
        f"[keys]\n'{SECRET}' = '{NAME}'",
    ],
)
def test_a_file_that_is_none_is_told_without_what_is_in_it(place: Path, text: str) -> None:
    """The error says where, and holds no key."""
    keys.keep(NAME, SECRET).write_text(text)
    with pytest.raises(RuleFileError, match=r"keys\.toml") as caught:
        find()
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in str(caught.value) + str(caught.value.details) + shown


def test_a_file_of_other_letters_is_told(place: Path) -> None:
    """Bytes that are no text."""
    keys.keep(NAME, SECRET).write_bytes(b"\xff")
    with pytest.raises(RuleFileError, match="not UTF-8"):
        find()


@pytest.mark.parametrize("key", ["", " \n", "two words", "line\nline", "schlüssel"])
def test_what_cannot_be_a_key_is_not_kept(place: Path, key: str) -> None:
    """It is refused and not repeated."""
    with pytest.raises(SettingError, match=r"cannot be a key|is empty") as caught:
        keys.keep(NAME, key)
    assert not key.strip() or key not in str(caught.value)
    assert not place.exists()


@pytest.mark.parametrize("name", ["", "sk-very-secret", "a b", "../x", "1A"])
def test_what_cannot_be_a_name_is_not_repeated(name: str) -> None:
    """It may be the key itself, typed into the wrong place."""
    for use in (lambda: keys.keep(name, SECRET), lambda: keys.remove(name)):
        with pytest.raises(SettingError, match="the name of an environment variable") as caught:
            use()
        assert not name or name not in str(caught.value)


def test_a_keyring_that_is_locked_or_missing_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking up finds nothing there; only keeping a key there says so."""
    (tmp_path / "keyring.json").write_text("locked")
    assert find() is None
    with pytest.raises(CredentialError, match="cannot be used: KeyringLocked") as caught:
        keys.keep(NAME, SECRET, in_keyring=True)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    keys._asked.clear()
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert find() is None
    with pytest.raises(thinkback.errors.MissingPackageError, match="not installed"):
        keys.keep(NAME, SECRET, in_keyring=True)


def test_an_endpoint_that_needs_no_key_wakes_no_keyring(tmp_path: Path) -> None:
    """A local server, or one that is signed in to, has a key there only where the file says so."""
    (tmp_path / "keyring.json").write_text(json.dumps({"thinkback/OLLAMA_API_KEY": SECRET}))
    assert find("ollama-native") is None
    keys.keep("OLLAMA_API_KEY", SECRET, in_keyring=True)
    assert SECRET == find("ollama-native")


def test_a_key_of_the_keyring_that_somebody_deleted_is_removed() -> None:
    """The file's word of it goes."""
    keys.keep(NAME, SECRET, in_keyring=True)
    keyring.delete_password("thinkback", NAME)
    keys.remove(NAME)
    assert {} == keys.places([NAME])


@pytest.mark.parametrize("in_keyring", [False, True])
def test_a_kept_key_shows_nowhere(
    tmp_path: Path, referee: Referee, capsys: pytest.CaptureFixture[str], in_keyring: bool
) -> None:
    """Through chats and failures that repeat it: neither in the log, nor in errors, nor in what is printed."""
    keys.keep(NAME, SECRET, in_keyring=in_keyring)
    echo = HttpError(401, {"error": {"message": f"Incorrect API key provided: {SECRET}"}})
    with thinkback.open(tmp_path / "chats.db") as store:
        session = store.session(
            "chat", endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek")
        )
        assert "completed" == session.chat("Weather in Oslo?", tools=[get_weather]).state
        referee.push(Step(fault=echo))
        with pytest.raises(ProviderError) as caught:
            session.chat("Hello?", max_retries=0)
        session.profiles.save("work")
        shown = [repr(caught.value), str(caught.value.details), "".join(traceback.format_exception(caught.value))]
        shown += [
            repr(session),
            repr(session.conversation.configure().place),
            repr(keys.read_file()),
            repr(session.explain()),
        ]
    terminal.complain(f"somebody repeats {SECRET}")
    assert [] == [text for text in (*shown, *capsys.readouterr()) if SECRET in text]
    files = [tmp_path / "chats.db", *(tmp_path / "config").rglob("*.toml")]
    holding = [file.name for file in files if SECRET.encode() in file.read_bytes()]
    assert ([] if in_keyring else ["keys.toml"]) == holding


def test_the_keyring_is_imported_only_when_nothing_else_has_the_key(place: Path) -> None:
    """It takes a fifth of a second."""
    keys.keep(NAME, SECRET)
    code = (
        "import sys; from thinkback.rules import load_rulebook; from thinkback.session.config import keys;"
        "found = keys.of_endpoint(load_rulebook({}).endpoint('deepseek'), None);"
        "print(len(found), 'keyring' in sys.modules)"
    )
    sources = str(Path(thinkback.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": sources}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert f"{len(SECRET)} False" == done.stdout.strip()
