"""``doctor --report``: what an issue needs, and nothing of what a person would not tell a stranger."""

from __future__ import annotations

import json
import sqlite3

import pytest

import thinkback
from tests.cli.conftest import Inside
from thinkback_referee import HttpError, Referee, Step

MINE = "xyzzy"
"""In everything that is a person's own."""


@pytest.fixture
def lived_in(inside: Inside, referee: Referee) -> Inside:
    """A place with keys, settings, profiles, an endpoint of its own and a log, of a turn that failed among others."""
    own = inside.config
    (own / "profiles").mkdir(parents=True)
    (own / "rules.toml").write_text(
        f'[[endpoint]]\nid = "{MINE}-house"\nname = "{MINE}"\nsource = "me"\n'
        f'base_url = "{referee.base_url("deepseek")}"\n'
        f'auth = {{ env = ["{MINE.upper()}_KEY"] }}\n'
    )
    (own / "settings.toml").write_text(
        f'[display]\nlanguage = "en"\n[session]\nprofile = "{MINE}"\n[params]\n{MINE} = "{MINE}"\n'
    )
    (own / "profiles" / f"{MINE}.toml").write_text(
        f'kind = "model"\nendpoint = "{MINE}-house"\nmodel = "deepseek-v4-pro"\n[reasoning]\neffort = "high"\n'
    )
    (own / "keys.toml").write_text(f'[keys]\nKIMI_KEY_{MINE} = "sk-{MINE}-1"\nMOONSHOT_API_KEY = "sk-{MINE}-2"\n')
    (own / "keys.toml").chmod(0o600)
    inside.environment |= {
        "OPENAI_API_KEY": f"sk-{MINE}-3",
        f"{MINE.upper()}_KEY": f"sk-{MINE}-4",
        "THINKBACK_TENANT": "default",
        "THINKBACK_MODEL": f"{MINE}-model",
    }
    referee.push(Step(text="."), Step(fault=HttpError(400, {"error": {"message": f"{MINE} is no good"}})))
    place = ("--endpoint", "deepseek", "--model", "deepseek-v4-pro", "--base-url", referee.base_url("deepseek"))
    inside("run", f"What is {MINE}?", "--session", MINE, *place)
    assert 3 == inside("run", f"And {MINE}?", "--session", MINE, *place).code
    return inside


def test_the_report_has_what_an_issue_needs(lived_in: Inside) -> None:
    """Versions, what is set and in which layer, keys by name, sizes, and how the last turn failed."""
    found = lived_in("doctor", "--report", "--json").json

    assert (thinkback.__version__, sqlite3.sqlite_version) == (found["thinkback"], found["sqlite"])
    assert {"click", "httpx2", "msgspec"} <= set(found["packages"])
    assert ["display.language", "session.profile", "1 name of your own"] == found["settings"]["user"]
    assert ["reasoning.effort"] == found["settings"]["default profiles"]
    assert "one of your own" == found["default endpoint"]
    assert "present (environment)" == found["keys"]["OPENAI_API_KEY"]
    assert "present (file)" == found["keys"]["MOONSHOT_API_KEY"]
    assert 1 == found["keys"]["under names of your own"]
    assert {"THINKBACK_DB", "THINKBACK_CONFIG_DIR", "THINKBACK_MODEL"} <= set(found["environment"])
    (failure,) = found["log"]["last failures"]
    assert ("failed", "deepseek") == (failure["kind"], failure["endpoint"])
    assert (1, lived_in.db.stat().st_size) == (found["log"]["sessions"], found["log"]["bytes"])
    assert 5 <= found["log"]["format"] < 100


def test_nothing_of_a_persons_own_is_in_it(lived_in: Inside) -> None:
    """Neither keys, values, what was said, addresses, paths nor names, in either form."""
    text = lived_in("doctor", "--report")
    told = text.out + json.dumps(lived_in("doctor", "--report", "--json").json)

    assert (0, "") == (text.code, text.err)
    assert [] == [secret for secret in (MINE, MINE.upper(), "127.0.0.1", str(lived_in.place), "sk-") if secret in told]


def test_it_reports_what_cannot_be_read(inside: Inside) -> None:
    """By the kind of the error; a log is not made."""
    inside.config.mkdir()
    (inside.config / "settings.toml").write_text(f"[{MINE}")
    inside.db.write_bytes(b"no log" * 100)
    done = inside("doctor", "--report")
    inside.db.unlink()

    assert "settings: cannot be read (rule-file)" in done.out
    assert "log: cannot be read (corrupt)" in done.out
    assert MINE not in done.out + done.err
    assert "place: there is none yet" in inside("doctor", "--report").out
    assert not inside.db.exists()
