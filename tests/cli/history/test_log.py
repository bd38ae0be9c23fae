"""``sessions``, ``log``, ``show`` and ``fsck``: what is stored, readable, and never an opaque value by accident."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest

import thinkback
from tests.cli.command import KEY, PLACE, Command
from tests.cli.conftest import ENCRYPTED, SIGNATURE, Inside
from thinkback.log.protocol import About, Origin
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Media, Text
from thinkback.model.commits import Draft, Head, Message, Step
from thinkback_referee import Call, Referee
from thinkback_referee import Step as Said


def test_the_log_has_one_line_per_commit(talked: Command) -> None:
    """Each commit is a line with short hash, kind and first words; reasoning is tagged."""
    with thinkback.open(talked.db) as store:
        commits = store.commits("talk")

    lines = talked("log", "--style", "list").out.splitlines()

    assert [commit.hash[:8] for commit in commits] == [line[:8] for line in lines]
    assert ["[reasoning]" if c.kind == "reasoning" else c.kind for c in commits] == [line.split()[1] for line in lines]
    assert any(line.endswith("What is the weather in Oslo?") for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_the_log_has_columns_whatever_the_kinds(command: Command, referee: Referee) -> None:
    """The times stand below each other, long names of kinds or not."""
    referee.push(Said(tool_calls=[Call("shell", {"command": "touch one"})]))
    command("run", "Hi", "--app", "coding", *PLACE, referee.base_url("deepseek"))

    for style in (("log", "--style", "list"), ("timeline",)):
        lines = command(*style).out.splitlines()
        assert any("permission_decision" in line for line in lines)
        assert 1 == len({re.search(r"\d\d:\d\d:\d\d", line).start() for line in lines})  # type: ignore[union-attr]


def test_an_answer_that_is_none_or_not_whole_is_told(command: Command, referee: Referee) -> None:
    """In the line of its response, and as a line of its own behind it in the style of a chat, filtered or not."""
    referee.push(Said(text="Half an", finish="length"), Said(), Said(text="Whole."))
    for prompt in ("One", "Two", "Three"):
        command("run", prompt, *PLACE, referee.base_url("deepseek"), "--session", "s")
    cut, empty = "the answer is cut off: the output limit was reached", "the answer has no text"

    texts = [commit["text"] for commit in command("log", "s", "--json").json if commit["kind"] == "response"]
    assert [True, True, False] == [told in text for told, text in zip((cut, empty, "answer"), texts, strict=True)]
    chat = command("log", "s", "--style", "chat").out
    lines = ("One", "Half an", f"({cut})", "Two", f"({empty})", "Three", "Whole.")
    places = [chat.index(f"{line}\n") for line in lines]
    assert sorted(places) == places
    assert 1 == command("log", "s", "--style", "chat", "--kind", "assistant").out.count(f"({cut})")


def test_the_tag_of_reasoning_is_dim_and_cyan_on_a_terminal(talked: Command) -> None:
    """The tag stands out by colour on a terminal, and is plain with NO_COLOR."""
    assert "\x1b[2;36m[reasoning]" in talked.on_terminal("log", "talk", "--style", "list").out
    assert "\x1b" not in talked.on_terminal("log", "talk", "--style", "list", NO_COLOR="1").out


def test_the_log_as_json_has_whole_hashes_and_texts(talked: Command) -> None:
    """``--json`` is a list of commits with full hash, kind, UTC time and text."""
    found = talked("log", "--json").json

    assert found[0]["hash"] == found[1]["parents"][0]
    assert {"reasoning", "tool_call", "tool_result", "assistant"} <= {commit["kind"] for commit in found}
    assert all(commit["time"].endswith("Z") for commit in found)


def test_every_kind_of_commit_can_be_shown(talked: Command, inside: Inside) -> None:
    """``show`` finds each commit by a prefix of its hash and prints something of it, as text and as JSON; a picture
    is named with its message.
    """
    look = Message("Look.", (Text("Look."), Media("image/png", data="AAAA", name="cat.png")))
    with thinkback.open(talked.db, rules={}, settings={}) as store:
        head = head_of(store.commits("talk"))
        store.log.append(store.find("talk").id, "s", seal(Step("s", (Draft("user", look),), 1), head), head)
    commits = inside("log", "--json").json
    for commit in commits:
        shown = inside("show", commit["hash"][:12])

        assert 0 == shown.code
        assert shown.out.startswith(f"commit {commit['hash']}\n{commit['kind']} {commit['seq']} of session talk")

    last = commits[-1]["hash"]
    assert inside("show", last).out.endswith("\n\nLook.\n[image/png cat.png]\n")
    assert last == inside("show", last[:12], "--json").json["hash"]


def test_opaque_values_are_told_by_kind_and_length(opaque: Command) -> None:
    """No view prints a signature or encrypted reasoning; ``show`` says what there is and how long it is."""
    views = [
        opaque("log").out,
        opaque("log", "--style", "list").out,
        opaque("log", "--json").out,
        opaque("why", "--next", "--json").out,
    ]
    for commit in opaque("log", "--json").json:
        views += [opaque("show", commit["hash"]).out, opaque("show", commit["hash"], "--json").out]

    whole = "\n".join(views)
    assert SIGNATURE not in whole
    assert ENCRYPTED not in whole
    assert f"(signature, {len(SIGNATURE)} characters)" in whole
    assert f"(encrypted, {len(ENCRYPTED)} characters)" in whole
    assert KEY not in whole


def test_opaque_values_are_printed_on_request(opaque: Command) -> None:
    """``show --json --with-carriers`` gives the stored payload as it is."""
    reasoning = [commit["hash"] for commit in opaque("log", "--json").json if commit["kind"] == "reasoning"]

    shown = [opaque("show", hash, "--json", "--with-carriers").json["payload"] for hash in reasoning]

    assert SIGNATURE in json.dumps(shown)
    assert ENCRYPTED in json.dumps(shown)


def test_opaque_values_are_for_programs_only(opaque: Command) -> None:
    """``--with-carriers`` without ``--json`` is wrong use."""
    assert 2 == opaque("show", "00", "--with-carriers").code


def test_stored_text_cannot_steer_the_terminal(command: Command) -> None:
    """Escape sequences in what is stored do not reach the terminal."""
    with thinkback.open(command.db) as store:
        info = store.log.create_session("s", "steering", 0)
        commits = seal(Step("step", (Draft("user", Message("\x1b[2Jgone\x07 \u202eback")),), 0), Head())
        store.log.append(info.id, "step", commits, Head())

    shown = command("log").out + command("show", commits[0].hash).out

    assert "gone" in shown
    assert not set("\x1b\x07\u202e") & set(shown)


@pytest.mark.parametrize("prefix", ["ffffffffffff", "not a hash"])
def test_a_commit_that_is_not_there_is_not_found(talked: Command, prefix: str) -> None:
    """An unknown prefix ends with exit code 2."""
    assert 2 == talked("show", prefix).code


def test_a_session_or_a_log_in_the_wrong_place_is_told(talked: Command, inside: Inside) -> None:
    """A session is no commit; a log that is named and not there is none without sessions."""
    shown, listed = inside("show", "talk"), inside("sessions", "--db", "nowhere.db")

    assert (2, 2) == (shown.code, listed.code)
    assert f"talk is a session, and no commit\n  - `thinkback log --db {talked.db} talk` shows it" in shown.err
    assert "there is no log at nowhere.db" in listed.err


def test_a_session_that_is_not_there_is_not_found(talked: Command) -> None:
    """An unknown session ends with exit code 2, and is not made."""
    assert 2 == talked("log", "nobody").code
    assert 2 == talked("why", "nobody").code
    assert ["talk"] == [session["name"] for session in talked("sessions", "--json").json]


def test_sessions_are_listed(talked: Command, inside: Inside, referee: Referee) -> None:
    """Title, models, turns, cost and last use, in 80 columns however long their names are; for programs all of it."""
    with thinkback.open(talked.db, rules={}, settings={}) as store:
        store.session("run-20261122-194553-7d60").commit("Why is the sky blue, and why does it get red?")
        store.session("other").commit("Hi")
    lines = inside("sessions").out.splitlines()
    assert ["session", "title", "model", "turns", "cost", "used"] == lines[0].split()
    assert [("other", "Hi"), ("run-20261122-194553-7d60", "Why is"), ("talk", "What is")] == [
        (line.split()[0], " ".join(line.split()[1:3]).removesuffix(" -")) for line in lines[1:]
    ]
    assert ["deepseek-v4-p…", "1", "-", "now"] == lines[3].split()[-4:]
    assert all(len(line) <= 80 for line in lines)
    assert 2 == len(inside("sessions", "-n", "1").out.splitlines())
    listed = inside("sessions", "--json").json
    assert len(talked("log", "talk", "--json").json) == listed[2]["commits"]
    assert ("What is the weather in Oslo?", ["deepseek-v4-pro"], 1) == tuple(
        listed[2][name] for name in ("title", "models", "turns")
    )


def test_a_title_is_given_or_written_by_the_model(talked: Command, inside: Inside, referee: Referee) -> None:
    """On demand, by the model of the session, without a trace in what was said."""
    before = inside("log", "talk", "--json").json
    assert "talk: Rain, perhaps\n" == inside("title", "talk", "Rain, perhaps").out
    referee.push(Said(text='"Weather in Oslo."\n'))
    assert {"session": "talk", "title": "Weather in Oslo"} == inside(
        "title", "talk", "--json", DEEPSEEK_API_KEY=KEY
    ).json
    assert "Weather in Oslo" in inside("sessions").out
    assert before == inside("log", "talk", "--json").json
    referee.push(Said(text="***"))
    assert "the model wrote no title" in inside("title", "talk", DEEPSEEK_API_KEY=KEY).err
    with thinkback.open(talked.db, rules={}, settings={}) as store:
        store.session("empty")
        store.log.describe(store.find("talk").id, About("codex", "shop", "/home/me/shop"))
    assert "shop: Weather in Oslo" in inside("sessions").out
    listed = next(each for each in inside("sessions", "--json").json if each["name"] == "talk")
    assert ["codex", "shop", "/home/me/shop"] == [listed[name] for name in ("program", "project", "directory")]
    place = "talk (shop: Weather in Oslo)"
    assert f"session {place}" == inside("log", "talk").out.splitlines()[0]
    assert place in inside("why", "talk").out
    hit = inside("search", "Oslo", "--json").json[0]
    assert ["talk", "Weather in Oslo", "shop"] == [hit[name] for name in ("session", "title", "project")]
    assert 2 == inside("title", "empty").code


def test_a_run_that_never_asked_leaves_nothing(talked: Command, inside: Inside, referee: Referee) -> None:
    """Not even under a name of its own: the session used last stays the one in which something was asked."""
    place = (*PLACE, referee.base_url("deepseek"))
    refused = inside("run", "Hi", *place, "--session", "new", "--param", "tool_choice=required", DEEPSEEK_API_KEY=KEY)
    assert (2, ["talk"]) == (refused.code, [session["name"] for session in inside("sessions", "--json").json])


def test_the_log_is_a_conversation_for_people(talked: Command, inside: Inside, referee: Referee) -> None:
    """By default, and of it the last turns; with a kind or a tag it is a list; what is long goes to a pager."""
    inside("run", "And now?", "--session", "talk", DEEPSEEK_API_KEY=KEY)
    whole, last = inside("log", "talk").out, inside("log", "talk", "-n", "1")
    assert whole.startswith("user\n  What is the weather in Oslo?\n\n[reasoning]\n")
    assert (True, False) == ("user\n  And now?" in last.out, "Oslo?\n" in last.out.partition("[reasoning]")[0])
    assert whole == inside("log", "talk", "-n", "9").out
    assert ["user"] == [row["kind"] for row in inside("log", "talk", "-n", "1", "--kind", "user", "--json").json]
    assert 2 == len(inside("log", "talk", "--kind", "user").out.splitlines())
    screen = {"PAGER": "sed s/^/paged:/", "COLUMNS": "80", "PYTHONUTF8": "1"}
    for rows, paged in (("5", True), ("500", False)):
        shown = talked.on_terminal("log", "talk", LINES=rows, **screen).out
        assert "session talk, branch main" in shown
        assert (True, paged) == ("Oslo?" in shown, "paged:" in shown)


def test_what_annotations_say_is_shown_with_a_commit(talked: Command, inside: Inside) -> None:
    """With the model and the endpoint that it is from; the response is found by the id that is printed."""
    with thinkback.open(talked.db, rules={}, settings={}) as store:
        session = store.session("talk")
        answer = session.log(kinds=("assistant",))[-1]
        session.annotate(answer.hash, "pinned", reason="right", tags=["b", "a"], message="keep", metadata={"n": [1]})
        noted = session.facts(answer.hash)
        assert [answer.hash] == [commit.hash for commit in session.log(metadata={"n": [1]})]
        assert [] == session.log(metadata={"n": 1}) + session.log(metadata={"m": [1]})
    said = {"model": "deepseek-v4-pro", "endpoint": "deepseek", "priority": "pinned", "reason": "right"}
    said |= {"tags": ["a", "b"], "message": "keep", "metadata": {"n": [1]}}  # type: ignore[dict-item]
    told = inside("show", answer.hash, "--json").json
    assert said == {name: told[name] for name in said}
    assert said == noted._asdict()
    shown = inside("show", answer.hash).out
    assert "model: deepseek-v4-pro\nendpoint: deepseek\npriority: pinned\nreason: right\ntags: a, b\n" in shown
    assert 'message: keep\nmetadata: {"n": [1]}\n' in shown
    response = inside("show", told["response"][:8], "--json").json
    assert ("response", told["response"]) == (response["kind"], response["response"])


@pytest.mark.parametrize("line", [("sessions",), ("log",), ("show", "00"), ("why",), ("fsck",)], ids=" ".join)
def test_looking_never_makes_a_log(command: Command, line: tuple[str, ...]) -> None:
    """Without a log, looking for one leaves none behind."""
    done = command(*line)

    assert (0 if line == ("sessions",) else 2) == done.code
    assert not command.db.exists()


def test_a_sound_log_is_clean(talked: Command) -> None:
    """``fsck`` counts what it checked."""
    done, counted = talked("fsck"), talked("fsck", "--json").json

    assert 0 == done.code
    assert f"clean: 1 session, {counted['commits']} commits\n" == done.out
    assert (1, []) == (counted["sessions"], counted["problems"])


def test_every_commit_counts_once_whatever_branch_it_is_on(talked: Command) -> None:
    """Those of another branch too, and what a fork shares with its parent only once."""
    with thinkback.open(talked.db) as store:
        info, trunk = store.find("talk"), store.commits("talk")
        start = head_of(trunk[:2])
        store.log.refs.create(info.id, "aside", start)
        store.log.append(info.id, "s", seal(Step("s", (Draft("user", Message("Aside.")),), 1), start), start, "aside")
        store.log.create_session("f", "fork", 1, Origin(info.id, at=head_of(trunk)))
    assert f"clean: 2 sessions, {len(trunk) + 1} commits\n" == talked("fsck").out


def test_a_damaged_log_is_told(talked: Command) -> None:
    """``fsck`` names what disagrees and ends with exit code 7."""
    with closing(sqlite3.connect(talked.db)) as connection, connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        holder = next(
            table
            for table in tables
            if "payload" in [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
        )
        connection.execute(f"UPDATE {holder} SET payload = x'7b7d'")
    connection.close()

    done, listed = talked("fsck"), talked("fsck", "--json")

    assert (7, 7) == (done.code, listed.code)
    assert [line.partition(": ")[2] for line in done.out.splitlines()] == [
        problem["what"] for problem in listed.json["error"]["details"]["problems"]
    ]
    assert "the log is damaged" in done.err


def test_the_log_by_branch_kind_tag_and_style(talked: Command) -> None:
    """Only what is asked for; the styles of people show marks, ``--json`` stays a list."""
    with thinkback.open(talked.db) as store:
        session = store.session("talk")
        first = session.log()[0]
        session.annotate(first.hash, "pinned", tags=["rain"])
        store.log.refs.create(session.id, "start", head_of(session.log()[:2]))
    assert ["reasoning"] * 2 == [commit["kind"] for commit in talked("log", "--kind", "reasoning", "--json").json]
    assert [first.hash] == [commit["hash"] for commit in talked("log", "--tag", "rain", "--json").json]
    assert 2 == len(talked("log", "talk", "--branch", "start", "--json").json)
    assert 2 == talked("log", "--branch", "gone").code
    assert "(pinned, rain)" in talked("log", "--style", "compact", "--tag", "rain").out
    assert "[reasoning]" in talked("log", "--style", "chat").out


@pytest.mark.parametrize("name", ["log", "why", "usage", "doctor", "tree", "timeline"])
def test_a_session_is_named_in_its_place_or_by_the_option(talked: Command, inside: Inside, name: str) -> None:
    """One convention for all commands that look at a session."""
    shown = [inside(name, *named) for named in (("talk",), ("--session", "talk"), ("-s", "talk"))]
    assert [(0, shown[0].out)] * 3 == [(done.code, done.out) for done in shown]
    assert 2 == inside(name, "talk", "--session", "other").code
    assert 2 == inside(name, "--session", "other").code


@pytest.mark.parametrize("line", [("compile", "talk"), ("diff", "talk"), ("branch", "new", "talk"), ("export", "talk")])
def test_a_session_in_another_place_is_told_with_the_option(
    talked: Command, inside: Inside, line: tuple[str, ...]
) -> None:
    """Where a commit or a file is meant."""
    done = inside(*line)
    assert (2, True) == (done.code, "talk is a session: name it with --session talk" in done.err)


def test_a_file_without_an_ending_may_have_been_meant_for_a_session(talked: Command, inside: Inside) -> None:
    """What is right then can be pasted; a file with another ending is a file."""
    bare, odd = inside("export", "try"), inside("export", "try.txt")
    assert (2, True) == (bare.code, " try.md --session try`" in bare.err)
    assert (2, False) == (odd.code, "--session" in odd.err)
