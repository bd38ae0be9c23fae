"""``apps`` and ``run --app``: what there is, what one says, and one that is used."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import KEY, PLACE, Command
from thinkback_referee import Referee


@pytest.fixture
def own(command: Command, referee: Referee) -> Command:
    """The command with an app ``mine`` that brings endpoint and model, and one that is broken."""
    place = command.config / "apps"
    place.mkdir(parents=True)
    (place / "mine.toml").write_text(
        'name = "Mine"\ndescription = "Does it."\nendpoint = "here"\nmodel = ["deepseek-v4-pro", "deepseek-v4-flash"]\n'
        'system_prompt = "One word."\ntools = ["mcp:files"]\n'
        '[mcp.files]\ncommand = "x"\nenv = { TOKEN = "sk-secret" }\n'
    )
    (place / "bad.toml").write_text("nmae = 3\n")
    (place / "plain.toml").write_text('model = "deepseek-v4-pro"\nendpoint = "here"\nsystem_prompt = "One word."\n')
    (command.config / "rules.toml").write_text(
        f'[[endpoint]]\nid = "here"\nname = "Here"\nbase_url = "{referee.base_url("deepseek")}"\nsource = "a test"\n'
        'auth = { env = ["DEEPSEEK_API_KEY"] }\n'
    )
    return command


def test_the_apps_are_listed_with_what_is_wrong_with_them(own: Command) -> None:
    """Those that ship and the person's own, by id; a file with faults does not hide the others."""
    shown, listed = own("apps"), own("apps", "--json").json
    assert ["bad", "coding", "mine", "plain", "research", "translator", "trial", "tutor"] == [
        row["id"] for row in listed
    ]
    assert "Does it. (yours)" in shown.out
    assert "did you mean name?" in shown.out
    assert "did you mean name?" in listed[0]["fault"]
    assert (None, str(own.config / "apps" / "mine.toml")) == (listed[1]["file"], listed[2]["file"])


def test_one_app_says_what_it_is(own: Command) -> None:
    """Models, tools, settings and prompt; what its servers are started with is not told."""
    shown, told = own("apps", "mine"), own("apps", "mine", "--json")
    assert "models    deepseek-v4-pro, deepseek-v4-flash" in shown.out
    assert "One word." in shown.out
    assert ["files"] == told.json["servers"]
    assert "sk-secret" not in shown.out + told.out
    assert 2 == own("apps", "mien").code


def test_run_uses_an_app(own: Command, referee: Referee) -> None:
    """Endpoint, model and prompt are the app's; the session keeps it, and another app is refused."""
    done = own("run", "--app", "plain", "--session", "s", "Hello?")
    assert (0, "One word.") == (done.code, _system(referee))
    assert 0 == own("run", "--session", "s", "And now?").code
    assert "One word." == _system(referee)
    refused = own("run", "--session", "s", "--app", "tutor", "And now?")
    assert "apps do not share one" in refused.err
    assert 2 == len(referee.requests)


def test_the_endpoint_of_an_app_holds_beside_a_base_url(command: Command) -> None:
    """``--base-url`` alone is another address of the app's endpoint, whose dialect the request speaks."""
    place = command.config / "apps"
    place.mkdir(parents=True)
    (place / "deep.toml").write_text('endpoint = "anthropic"\nmodel = "claude-opus-4-6"\n')

    done = command("run", "--app", "deep", "--base-url", "http://127.0.0.1:9/v1", "--dry-run", "--json", "Hello?")

    assert (0, "http://127.0.0.1:9/v1/messages") == (done.code, done.json["url"])


def test_an_unknown_app_stores_nothing(own: Command) -> None:
    """The error comes before a session is made."""
    done = own("run", "--app", "tutr", *PLACE, "http://127.0.0.1:9", "Hello?")
    assert "did you mean tutor?" in done.err
    assert [] == own("sessions", "--json").json


def test_a_session_whose_app_is_gone_can_be_read_and_left(own: Command) -> None:
    """What was said and used is there; a request names what is missing and how to go on."""
    own("run", "--app", "plain", "--session", "s", "Hello?")
    (own.config / "apps" / "plain.toml").unlink()
    assert [0, 0, 0] == [own(word, "s").code for word in ("log", "usage", "why")]
    refused = own("run", "--session", "s", "And now?")
    assert "there is no app 'plain'" in refused.err
    assert "or unset session.app to go on without it" in refused.err
    left = own("chat", "--session", "s", stdin=b"/set unset session.app\nAnd now?\n")
    assert (0, True) == (left.code, "And now?" in left.out)


def test_a_dry_run_shows_what_the_app_adds(own: Command) -> None:
    """The body has the app's prompt; nothing is sent."""
    body = json.loads(own("run", "--app", "plain", "--dry-run", "Hello?").out)
    assert {"role": "system", "content": "One word."} == body["messages"][0]
    assert "deepseek-v4-pro" == body["model"]
    assert KEY not in json.dumps(body)


def _system(referee: Referee) -> object:
    messages = referee.requests[-1].body["messages"]
    assert isinstance(messages, list)
    return messages[0]["content"]
