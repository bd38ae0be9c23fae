"""The open log and what the machine says: files, directories, keys."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

import thinkback
from thinkback.errors import NotFoundError, RuleFileError, StoreError
from thinkback.session import config
from thinkback.session.store import SessionStore
from thinkback.stores.sqlite import open_sqlite
from thinkback.stores.sqlite_open import connect


def test_session_is_made_once(store: SessionStore) -> None:
    """The same name is the same session, without a place to go it can still be read."""
    one, other = store.session("chat"), store.session("chat")
    assert one.id == other.id
    assert ["chat"] == [info.name for info in store.sessions()]
    assert one.id == store.find("chat").id == store.find(one.id).id
    assert "<Session 'chat': 0 commits, >" == repr(one)
    with pytest.raises(NotFoundError, match="no session 'other'"):
        store.find("other")


def test_new_session_is_one_transaction(tmp_path: Path) -> None:
    """With the settings that it begins with; one that is there is found without any."""
    writers: list[sqlite3.Connection] = []

    def remembered(path: str) -> sqlite3.Connection:
        writers.append(connect(path))
        return writers[-1]

    with SessionStore(open_sqlite(str(tmp_path / "chats.db"), "full", remembered), True, {}, {}) as store:
        statements: list[str] = []
        writers[0].set_trace_callback(statements.append)
        assert {"session.defaults": "1"} == dict(store.session("chat").conversation.info.settings)
        store.session("chat")
    assert 1 == statements.count("COMMIT")


def test_closed_store_is_closed(tmp_path: Path) -> None:
    """Twice is no error; what comes later is."""
    store = thinkback.open(tmp_path / "chats.db", durability="normal")
    store.session("chat")
    store.close()
    store.close()
    with pytest.raises(StoreError):
        store.sessions()


def test_rules_of_the_user_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``rules.toml`` and every file under ``rules``; a broken one is named."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    row = '[[endpoint]]\nid = "{0}"\nname = "{0}"\nbase_url = "https://{0}.example/v1"\nsource = "mine"\n'
    (tmp_path / "rules.toml").write_text(row.format("first"))
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "more.toml").write_text(row.format("second"))
    with thinkback.open(":memory:") as store:
        for name in ("first", "second"):
            assert f"https://{name}.example/v1" == store.session("s", endpoint=name, model="m").target.base_url
    (tmp_path / "rules.toml").write_text("[[endpoint")
    with thinkback.open(":memory:") as store, pytest.raises(RuleFileError, match=r"rules\.toml"):
        _ = store.rulebook


def test_places_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names them; else they are the platform's, and the log's directory is private."""
    monkeypatch.setenv("THINKBACK_DB", str(tmp_path / "my.db"))
    assert tmp_path / "my.db" == config.data_file()
    monkeypatch.delenv("THINKBACK_DB")
    monkeypatch.delenv("THINKBACK_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert tmp_path in config.config_dir().parents
    made = config.data_file()
    assert tmp_path in made.parents
    assert not made.parent.exists()
    config.make_place(str(made))
    if sys.platform != "win32":
        assert 0o700 == made.parent.stat().st_mode & 0o777
    assert (None, {}) == (config.user_settings_file(), config.user_rule_files())


def test_day_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules are chosen by it."""
    assert 10 == len(config.today())
