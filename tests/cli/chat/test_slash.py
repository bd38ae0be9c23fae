"""Slash commands: what each does, and what each refuses without changing anything."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.chat.talks import asked, messages, open_chat, say
from thinkback.cli import exits
from thinkback.cli.chat.chat import Chat
from thinkback.cli.chat.slash import inspect
from thinkback.cli.chat.table import completions, table
from thinkback.model.blocks import ThinkingBlock
from thinkback_referee import Call, Referee, Step

Caught = pytest.CaptureFixture[str]


def words(chat: Chat, line: str) -> list[str]:
    """What may go on at the end of ``line``."""
    return [word for word, _ in completions(chat, line)]


@pytest.mark.parametrize("line", ["/quit", "/exit", "/q", "/exit now"])
def test_leaving_has_the_names_that_people_know(chat: Chat, line: str, capsys: Caught) -> None:
    """They are not taken for the nearest command, which would ask again."""
    say(chat, line)

    assert chat.is_over


def test_an_unknown_command_names_its_neighbours(chat: Chat, capsys: Caught) -> None:
    """A mistyped command is answered with the nearest ones, and nothing is sent."""
    say(chat, "/modle gpt-5")

    assert "there is no command /modle: did you mean /model?" in capsys.readouterr().err
    assert "deepseek-v4-pro" == chat.session.target.model


def test_reasoning_by_hand_is_kept_and_sent_to_nobody(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """``/reasoning TEXT`` adds to the log; without a text it says how it is used."""
    say(chat, "One.", "/reasoning It is the linker's fault.", "Two.", "/reasoning")

    said = capsys.readouterr().err
    assert ("stored as reasoning" in said, "usage: /reasoning TEXT" in said) == (True, True)
    thoughts = [commit.value for commit in chat.session.log(kinds=["reasoning"]) if not commit.response]
    assert [ThinkingBlock("It is the linker's fault.", source_field="parsed")] == thoughts
    assert "linker" not in str(referee.requests[-1].body)


@pytest.mark.parametrize("name", table())
def test_every_command_explains_itself(chat: Chat, capsys: Caught, name: str) -> None:
    """``/help NAME`` shows usage and help, and completion offers the name."""
    say(chat, f"/help {name}")

    assert f"/{table()[name].usage}" in capsys.readouterr().out
    assert name in words(chat, f"/{name[:2]}")


def test_help_lists_every_command(chat: Chat, capsys: Caught, monkeypatch: pytest.MonkeyPatch) -> None:
    """``/help`` has a row for each; what does not fit goes on below the description."""
    monkeypatch.setenv("COLUMNS", "80")
    say(chat, "/help")

    shown = capsys.readouterr().out.splitlines()
    begun = [line for line in shown if not line.startswith("            ")]
    assert [f"/{name}" for name in table()] == [line.split()[0] for line in begun]
    assert (True, True) == (len(shown) > len(begun), max(map(len, shown)) <= 80)


def test_a_setting_acts_from_the_next_request_on(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """``/set`` changes what is sent next and says who set it; ``/set unset`` takes it back."""
    say(chat, "One.", "/set reasoning.effort high", "Two.", "/set unset reasoning.effort", "Three.")

    assert [None, "high", None] == [exchange.body.get("reasoning_effort") for exchange in referee.requests]
    shown = capsys.readouterr().out
    assert "reasoning.effort = high (set by session)" in shown
    assert "reasoning.effort = (unset) (from built-in)" in shown


def test_a_bad_value_is_refused_with_the_allowed_ones(chat: Chat, capsys: Caught) -> None:
    """The old value stays."""
    say(chat, "/set reasoning.effort low", "/set reasoning.effort enormous", "/set reasoning.efort low")

    told = capsys.readouterr().err
    assert "low" == chat.session.settings.effort
    assert "(allowed: none, minimal, low, medium, high, xhigh, max)" in told
    assert "did you mean reasoning.effort or " in told


def test_set_with_a_key_alone_explains_it(chat: Chat, capsys: Caught) -> None:
    """Help, allowed values, the value in force and its layer."""
    say(chat, "/set reasoning.stripFromContext")

    shown = capsys.readouterr().out
    assert "Allowed: all, allButLast, none." in shown
    assert "reasoning.stripFromContext = none (required by rule deepseek-v4)" in shown


def test_default_hides_what_weaker_layers_say(referee: Referee, capsys: Caught) -> None:
    """``/set KEY default`` beats the user's file, for keys with a built-in default and for those without."""
    import thinkback

    weaker = {"reasoning.effort": "low", "reasoning.enabled": False}
    with thinkback.open(":memory:", rules={}, settings=weaker) as store:
        chat = open_chat(store, referee)
        say(chat, "/set reasoning.effort default", "/set reasoning.enabled default")
        settings = chat.session.settings

    assert (None, True) == (settings.effort, settings.enabled)
    assert "reasoning.enabled = true (set by session)" in capsys.readouterr().out


def test_set_alone_lists_all(chat: Chat, capsys: Caught) -> None:
    """Every key with value and layer."""
    say(chat, "/set reasoning.effort max", "/set")
    said = capsys.readouterr().out
    assert ("permissions.mode" in said, "/set all lists every setting" in said) == (False, True)
    say(chat, "/set all")

    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["reasoning.effort", "max", "session"] in shown
    assert ["reasoning.enabled", "true", "built-in"] in shown


def test_keys_and_values_are_completed(chat: Chat) -> None:
    """Keys after ``/set``, then the words that the key allows; what the session set after ``/set unset``."""
    say(chat, "/set reasoning.effort high")

    assert ["reasoning.effort"] == words(chat, "/set reasoning.eff")
    assert ["minimal", "medium", "max"] == words(chat, "/set reasoning.effort m")
    assert ["default"] == words(chat, "/set reasoning.effort d")
    assert ["reasoning.effort", "session.defaults"] == words(chat, "/set unset ")
    assert ["tutor"] == words(chat, "/set session.app tu")
    assert ["default"] == words(chat, "/set session.profile ")
    assert [] == words(chat, "/set nonsense ")
    assert [] == words(chat, "/nonsense ")
    assert [] == words(chat, "no command")


def test_the_model_changes_and_the_history_stays(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """``/model`` acts on the next request; the endpoint takes one or both."""
    say(chat, "One.", "/model deepseek-v4-flash", "Two.")
    say(chat, f"/endpoint kimi kimi-k2.6 --base-url {referee.base_url('kimi')}", "/model")

    models = [exchange.body["model"] for exchange in referee.requests]
    shown = capsys.readouterr()
    assert ["deepseek-v4-pro", "deepseek-v4-flash"] == models
    assert "kimi kimi-k2.6" in shown.out
    assert "known here: " in shown.err
    assert 3 == len(messages(referee, 1))


def test_endpoints_are_listed_and_unknown_ones_refused(chat: Chat, capsys: Caught) -> None:
    """An unknown endpoint changes nothing; ``/endpoint`` alone lists them."""
    say(chat, "/endpoint", "/endpoint nowhere", "/endpoint a b c", "/endpoint openai --base-url")
    say(chat, "/endpoint --nonsense")

    shown = capsys.readouterr()
    assert "anthropic" in shown.out
    assert "/endpoint ID changes to one" in shown.out
    assert "no endpoint is called 'nowhere'" in shown.err
    assert "--base-url wants a value" in shown.err
    assert 2 == shown.err.count("usage: /endpoint")
    assert "deepseek" == chat.session.target.endpoint.id


def test_places_are_completed(chat: Chat) -> None:
    """Endpoints, models of the endpoint, and options behind them."""
    assert {"deepseek", "deepseek-anthropic"} < set(words(chat, "/endpoint deep"))
    assert "deepseek-reasoner" in words(chat, "/model ")
    assert ["--key-env"] == words(chat, "/endpoint deepseek --k")
    assert [] == words(chat, "/endpoint deepseek --key-env ")


def test_an_app_begins_before_the_first_message_or_in_a_session_of_its_own(
    chat: Chat, referee: Referee, capsys: Caught, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apps do not share a conversation; what was said before can be gone back to."""
    say(chat, "/app nonsense", "/app tutor", "One.", "/app tutor", "/app translator", "Two.", "/app none", "/app")

    shown = capsys.readouterr()
    assert "there is no app 'nonsense'" in shown.err
    assert "session talk: Tutor" in shown.out
    assert "/resume talk goes back" in shown.err
    assert "talk" != chat.session.name
    assert [2, 2] == [len(messages(referee, at)) for at in range(2)]
    assert f"session {chat.session.name}: no app" in shown.out
    assert "coding" in shown.out
    assert ["translator"] == words(chat, "/app tra")
    say(chat, "/resume talk", "/app")
    assert "session talk: Tutor" in capsys.readouterr().out
    monkeypatch.setenv("HOME", str(Path.cwd().parent))
    say(chat, "/app coding")
    works = f"Coding agent in ~/{Path.cwd().name}: reads, and asks before it writes or runs"
    assert works in (shown := capsys.readouterr()).err
    assert "(/set permissions.mode auto or read_only changes it)" in shown.err


def test_profiles_are_saved_loaded_and_deleted(
    chat: Chat, referee: Referee, capsys: Caught, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading acts on the next request, on settings and place alike; what was not set is not saved."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    say(chat, "/profile", "/set reasoning.effort high", "/profile save deep", "/set unset reasoning.effort")
    say(chat, "One.", "/profile load deep", "Two.", "/set reasoning.effort", "/profile", "/profile load nobody")
    assert ["deep"] == words(chat, "/profile load d")
    assert ["delete", "default"] == words(chat, "/profile de")
    assert [] == words(chat, "/profile list ")
    say(
        chat,
        "/set unset session.profile",
        "/profile delete deep",
        "/profile list",
        "/profile save",
        "/profile nonsense",
    )

    shown = capsys.readouterr()
    assert [None, "high"] == [exchange.body.get("reasoning_effort") for exchange in referee.requests]
    assert "reasoning.effort = high (set by profile)" in shown.out
    assert "* deep" in shown.out
    assert "nobody" in shown.err
    assert 2 == shown.err.count("no profiles yet")
    assert 2 == shown.err.count("usage: /profile")


def test_the_default_profile_needs_the_settings_file(chat: Chat, capsys: Caught) -> None:
    """A program that replaced the file is told so."""
    say(chat, "/profile default deep")

    assert "the default cannot be set" in capsys.readouterr().err


def test_why_tells_the_last_the_next_and_any_request(chat: Chat, capsys: Caught) -> None:
    """Decisions of requests, and what led to an answer."""
    say(chat, "One.", "Two.", "/why", "/why next")
    answer = chat.session.log(kinds=("assistant",))[0].hash[:8]
    say(chat, f"/why {answer}", "/why ffff")

    shown = capsys.readouterr()
    assert "session talk, last request: deepseek deepseek-v4-pro, 3 messages" in shown.out
    assert "session talk, next request" in shown.out
    assert f'assistant {answer}: You said: "One."' in shown.out
    assert "ffff" in shown.err
    assert answer in words(chat, "/why ")
    assert [] == words(chat, "/why next ")


def test_why_before_the_first_request_is_refused(chat: Chat, capsys: Caught) -> None:
    """There is nothing to explain, which is told."""
    say(chat, "/why")

    assert capsys.readouterr().err.startswith("thinkback: ")
    assert exits.code_of("not-found") == chat.code


def test_think_browses_the_reasoning(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """A line for each response that reasoned; a number shows it in full; any other word is refused."""
    say(chat, "/think")
    referee.push(Step(reasoning="First line.\nSecond line.", text="Answer."))
    say(chat, "One.", "Two.")
    capsys.readouterr()
    say(chat, "/think", "/think 1", "/think 3", "/think x")

    shown = capsys.readouterr()
    assert "First line. Second line." in shown.out
    assert "  First line.\n  Second line." in shown.out
    assert 2 == shown.err.count("allowed is last, or a number from 1 to 2")
    assert re.search(r"\[reasoning\] [0-9a-f]{8}(, ~\d+ s)?, ~?\d+ tokens?\n", shown.out)
    assert ["last", "1", "2"] == words(chat, "/think ")


def test_calls_are_listed_and_shown_whole(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """What was called for what and what came of it; by number, arguments and result as they are."""

    def look(path: str, depth: int) -> str:
        """Look at a place."""
        return f"{path} at {depth}\nand more"

    say(chat, "/calls", "/calls 1")
    referee.push(Step(tool_calls=[Call("look", {"path": "here", "depth": 2})]), Step(text="Done."))
    chat.session.chat("Look.", tools=[look])
    capsys.readouterr()
    say(chat, "/calls", "/calls 1", "/calls 2", "/think last")

    shown = capsys.readouterr()
    assert "1  ✓ look here · 2 lines\n" in shown.out
    assert '"depth":2' in shown.out.replace(" ", "")
    assert "  here at 2\n  and more\n" in shown.out
    assert "/calls 2: allowed is a number from 1 to 1" in shown.err
    assert ["1"] == words(chat, "/calls ")


def test_think_says_when_there_is_none(chat: Chat, capsys: Caught) -> None:
    """No reasoning yet."""
    say(chat, "/think", "/think 1")

    told = capsys.readouterr().err
    assert "there is no reasoning yet" in told
    assert "nothing yet: there is no reasoning" in told


def test_branches_are_made_listed_switched_and_deleted(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """What is said on a branch is on no other."""
    say(chat, "One.", "/branch side", "Two.", "/switch main", "Three.", "/branch", "/branch --delete side")
    say(chat, "/branch --delete", "/switch nowhere", "/branch main")

    shown = capsys.readouterr()
    assert ["One.", "Two.", "Three."] == asked(referee)
    assert 3 == len(messages(referee))
    assert "* main" in shown.out
    assert "no other branch has the commits of side" in shown.err
    assert "usage: /branch [NAME [COMMIT]] | /branch --delete NAME" in shown.err
    assert "there is no branch 'nowhere'" in shown.err
    assert "the session has a branch 'main' already" in shown.err
    assert ["side"] == words(chat, "/switch ")
    assert ["main", "side"] == words(chat, "/branch --delete ")


def test_a_fork_goes_on_in_a_session_of_its_own(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """The session that it came from stays as it is, and can be gone back to."""
    say(chat, "One.", "/fork other", "Two.")
    assert "other" == chat.session.name
    say(chat, "/resume talk")

    assert "talk" == chat.session.name
    assert 1 == len(chat.session.log(kinds=("user",)))
    assert 3 == len(messages(referee))
    assert "session other, a copy of talk; /resume talk goes back" in capsys.readouterr().out


def test_retry_asks_the_last_message_again_on_a_new_branch(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """The first answer stays on its branch, and the second request does not carry it."""
    referee.push(Step(text="Old."), Step(text="New."))
    say(chat, "One.", "/retry")

    assert ["One.", "One."] == asked(referee)
    assert [1, 1] == [len(messages(referee, at)) for at in range(2)]
    assert "retry-1" == chat.session.branches.current
    assert "branch retry-1; /switch main goes back" in capsys.readouterr().err
    say(chat, "/switch main")
    assert "Old." in capsys.readouterr().out


def test_edit_says_the_last_message_otherwise(chat: Chat, referee: Referee) -> None:
    """What came before goes along, the old words do not; they stay in the log."""
    say(chat, "One.", "Two.", "/edit Other.", "/edit And another.")

    assert ["One.", "Two.", "Other.", "And another."] == asked(referee)
    assert "Two." not in str(messages(referee))
    assert ["edit-1", "edit-2", "main"] == [one.name for one in chat.session.branches.list()]


def test_retry_and_edit_want_a_message(chat: Chat, capsys: Caught) -> None:
    """Before anything was asked there is none; without words and without a person to ask, edit does nothing."""
    say(chat, "/retry", "/edit words")
    told = capsys.readouterr().err
    say(chat, "One.", "/edit", "/retry now")

    assert 2 == told.count("there is no message yet")
    refused = capsys.readouterr().err
    assert "usage: /edit TEXT" in refused
    assert "usage: /retry" in refused
    assert "main" == chat.session.branches.current


def test_compact_says_what_it_would_do_and_does_it(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """The checkpoint acts on the next request."""
    for at in range(6):
        referee.push(Step(text=f"Answer {at}. " + "Many words. " * 60))
        say(chat, f"Question {at}. " + "Words upon words. " * 60)
    say(chat, "/compact --dry-run --tail 1", "/compact --tail 1", "Go on.")

    shown = capsys.readouterr().out
    assert "nothing was stored: --dry-run" in shown
    assert "\ncheckpoint " in shown
    assert 1 == len(chat.session.compaction.list())
    assert len(messages(referee)) < 8


def test_compact_shortens_old_thoughts(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """It says what it costs before it asks; a dry run asks nothing."""
    chat.session.set("reasoning.includeInContext", True)
    for at in range(3):
        referee.push(Step(reasoning="I think so. " * 60, text=f"Answer {at}."))
        say(chat, f"Question {at}.")
    asked = len(referee.requests)
    say(chat, "/compact --dry-run --tail 1 thoughts")
    assert asked == len(referee.requests)
    assert "2 thoughts of about" in capsys.readouterr().out
    notes = [{"number": 1, "text": "So."}, {"number": 2, "text": "So too."}]
    referee.push(Step(text=json.dumps({"notes": notes})))
    say(chat, "/compact --tail 1 thoughts")
    shown = capsys.readouterr().out
    assert shown.index("2 thoughts of about") < shown.index("2 thoughts shortened")
    assert 2 == sum(commit.edit != "" for commit in chat.session.log())
    assert "thoughts" in words(chat, "/compact ")


def test_compact_refuses_what_it_does_not_know(chat: Chat, capsys: Caught) -> None:
    """A strategy, a number, or a history that is too short."""
    say(chat, "One.", "/compact nonsense", "/compact --tail x", "/compact")

    told = capsys.readouterr().err
    assert "allowed are deterministic, model, sliding_window" in told
    assert "--tail wants a whole number" in told
    assert "there is nothing new to summarise" in told
    assert "sliding_window" in words(chat, "/compact --dry-run ")
    assert [] == chat.session.compaction.list()


def test_usage_counts_by_model_turn_and_step(chat: Chat, capsys: Caught) -> None:
    """The tokens of the session, in the table that the command prints."""
    say(chat, "One.", "/usage", "/usage turn", "/usage nonsense")

    shown = capsys.readouterr()
    assert "deepseek-v4-pro" in shown.out
    assert "\nturn " in shown.out
    assert "/usage nonsense: allowed are model, turn, step" in shown.err
    assert ["turn"] == words(chat, "/usage t")


def test_search_finds_in_all_sessions_or_here(
    chat: Chat, referee: Referee, capsys: Caught, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of a search go as they stand, quotation marks too; what shows more looks in the same place."""
    referee.push(Step(reasoning="A walrus thinks.", text="Indeed."))
    say(chat, "One walrus here.", "/fork other", '/search "walrus here"', "/search --reasoning walrus")
    chat.session.commit("Another walrus.")
    say(chat, "/search --here Another", "/search", "/search nothinglikeit")

    shown = capsys.readouterr()
    assert "One walrus here." in shown.out
    assert "A walrus thinks." in shown.out
    assert "Another walrus." in shown.out
    assert "usage: /search" in shown.err
    assert "nothing was found" in shown.err
    assert ["--reasoning"] == words(chat, "/search --here --r")

    chat.session.reasoning("One by hand.")
    chat.session.reasoning("Two by hand.")
    monkeypatch.setattr(inspect, "_LIMIT", 1)
    say(chat, "/search --reasoning --here hand")
    more = capsys.readouterr().err
    assert "`thinkback search --reasoning --limit 100 --session other hand` (in a shell) shows them" in more


def test_export_writes_the_session(chat: Chat, capsys: Caught, tmp_path: Path) -> None:
    """Reasoning goes along where it is asked for; a wrong format writes nothing."""
    say(chat, "One.", f"/export {tmp_path}/a.md", f"/export {tmp_path}/b.md --with-reasoning")
    say(chat, f"/export {tmp_path}/c --format nonsense", "/export")
    say(chat, f"/export {tmp_path}/d --format jsonl --complete", f"/export {tmp_path}/missing/e.md")
    (tmp_path / "f.md").write_text("Mine.")
    say(chat, f"/export {tmp_path}/f.md")
    kept = (tmp_path / "f.md").read_text()
    say(chat, f"/export {tmp_path}/f.md --force")

    shown = capsys.readouterr()
    assert "One." in (tmp_path / "a.md").read_text()
    assert "No tool is needed" not in (tmp_path / "a.md").read_text()
    assert "No tool is needed" in (tmp_path / "b.md").read_text()
    assert not (tmp_path / "c").exists()
    assert (tmp_path / "d").exists()
    assert ("Mine.", True) == (kept, "One." in (tmp_path / "f.md").read_text())
    assert f"{tmp_path}/f.md exists already\n  - --force overwrites it" in shown.err
    assert "left out: 1 block of reasoning (--with-reasoning includes it)\n" in shown.err
    assert 2 == shown.err.count("usage: /export")
    assert "missing" in shown.err
    assert ["markdown"] == words(chat, "/export x --format m")


def test_export_completes_files(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In any directory, also one under the person's own; not where the file is said, nor what would need quotes."""
    for name in ("kept.md", "key.txt", ".hidden", "with blank", "other"):
        (tmp_path / name).touch()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.md").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert ["kept/", "kept.md", "key.txt"] == words(chat, "/export ke")
    assert ["kept/a.md"] == words(chat, "/export --complete kept/")
    assert ["~/kept/a.md"] == words(chat, "/export ~/kept/a")
    assert [".hidden"] == words(chat, "/export .")
    said = "/export --with-reasoning --complete --force "
    assert ["kept/", "kept.md", "key.txt", "other", "--format"] == words(chat, said)
    assert ["--complete"] == words(chat, "/export kept.md --with-reasoning --c")
    assert ["other"] == words(chat, "/export --format markdown o")
    assert [] == words(chat, "/export missing/")


def test_sessions_are_listed_and_resumed(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """What was said and thought there is shown, and an unknown name is refused."""
    say(chat, "One.", "/fork other", "Two.", "/sessions", "/resume nobody", "/resume")
    before = capsys.readouterr()
    say(chat, "/resume talk")

    shown = capsys.readouterr().out
    assert {"talk", "other"} < set(before.out.split())
    assert "there is no session 'nobody'" in before.err
    assert "usage: /resume" in before.err
    assert "One." in shown
    assert "Thought for" in shown
    assert "Two." not in shown
    assert ["other"] == words(chat, "/resume oth")


def test_what_is_shown_follows_the_settings(chat: Chat, capsys: Caught) -> None:
    """Also what was said before: hidden thinking is hidden when a session is shown again."""
    say(chat, "One.", "/branch side")
    capsys.readouterr()
    say(chat, "/set reasoning.includeInResponse false", "/switch main")
    hidden = capsys.readouterr().out
    say(chat, "/set unset reasoning.includeInResponse", "/set display.reasoning full", "/switch side")

    assert "Thought for" not in hidden
    assert "No tool is needed" in capsys.readouterr().out


def test_words_that_cannot_be_taken_apart_are_wrong_use(chat: Chat, capsys: Caught) -> None:
    """An open quotation mark is told as such."""
    say(chat, '/model "half')

    assert "No closing quotation: usage is /model [NAME]" in capsys.readouterr().err


def test_a_request_field_is_set_shown_and_unset(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """``/set modelparam NAME VALUE`` is ``/set params.NAME VALUE``; JSON keeps its quotes."""
    say(
        chat,
        "/set modelparam temperature 0.25",
        '/set modelparam stop ["a b", "c"]',
        "/set params.seed 7",
        "Hi.",
        "/set",
    )

    sent = referee.requests[-1].body
    assert (0.25, ["a b", "c"], 7) == (sent["temperature"], sent["stop"], sent["seed"])
    out = capsys.readouterr().out
    assert "params.temperature = 0.25 (set by session)" in out
    assert "params.seed" in out.rpartition("params.temperature")[2] + out

    say(chat, "/set unset modelparam temperature", "/set modelparam temperature", "Hi.")

    assert "temperature" not in referee.requests[-1].body
    assert "usage: /set" in capsys.readouterr().err


def test_a_setting_shows_what_happens_by_scope(chat: Chat, capsys: Caught) -> None:
    """``/set KEY`` names who decides; a change shows what becomes of it at once."""
    say(chat, "/set reasoning.includeInContext", "/set reasoning.maxTokens 500", "/set reasoning.enabled")

    out = " ".join(capsys.readouterr().out.split())
    assert "open turn: yes, required by rule deepseek-v4" in out
    assert "finished turns: yes, of turns that used tools, required by rule deepseek-v4" in out
    assert "request: not sent: deepseek has no way to say it for deepseek-v4-pro, rule deepseek-v4" in out
    assert "request: thinking.type = enabled, rule deepseek-v4" in out


def test_a_profile_of_profiles_is_made(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Caught
) -> None:
    """``/profile save NAME failover A B``; what cannot be a target is refused, and nothing is written."""
    monkeypatch.setenv("THINKBACK_CONFIG_DIR", str(tmp_path))
    say(chat, "/profile save one", "/profile save two", "/profile save both round-robin one two")

    text = (tmp_path / "profiles" / "both.toml").read_text()
    assert 'kind = "round-robin"\ntargets = ["one", "two"]\n' == text
    assert ["failover", "round-robin"] == words(chat, "/profile save x ")
    assert ["both", "one", "two"] == words(chat, "/profile save x failover ")

    say(chat, "/profile save x failover nobody", "/profile save x failover")

    assert not (tmp_path / "profiles" / "x.toml").exists()
    err = capsys.readouterr().err
    assert ("there is no profile nobody" in err, "usage: /profile" in err) == (True, True)


def test_new_begins_another_session_at_the_same_place(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """The one before can be gone back to; an unused one without a name is forgotten."""
    with chat:
        say(chat, "One.", "/new", "/new other", "Two.", "/new talk")
        assert ("other", 1) == (chat.session.name, len(messages(referee)))
    assert {"talk", "other"} == {info.name for info in chat.store.sessions()}
    shown = capsys.readouterr().err
    assert "session other; /resume chat-" in shown
    assert "session talk exists already" in shown


def test_the_system_prompt_is_shown_and_changed(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """From the next message on."""
    say(chat, "/system", "/system Be brief.", "/system", "One.", "/system")

    shown = capsys.readouterr()
    assert "there is no system prompt" in shown.err
    assert 2 == shown.out.count("  Be brief.\n")
    assert {"role": "system", "content": "Be brief."} == messages(referee)[0]


def test_undo_goes_on_from_before_the_last_message(chat: Chat, referee: Referee, capsys: Caught) -> None:
    """On a branch: what was taken back goes to nobody, and is not lost."""
    say(chat, "One.", "Two.", "/undo", "Three.")

    assert "undo-1" == chat.session.branches.current
    assert "Two." not in str(messages(referee))
    assert "branch undo-1; /switch main goes back" in capsys.readouterr().err


def test_copy_wants_an_answer_and_a_terminal(chat: Chat, capsys: Caught) -> None:
    """Otherwise it says what to do instead; clear leaves the conversation alone."""
    say(chat, "/copy", "One.", "/copy", "/clear")

    told = capsys.readouterr().err
    assert "there is no answer to copy yet" in told
    assert "/copy needs a terminal" in told
    assert "/new begins another" in told
    assert 1 == len(chat.session.log(kinds=("user",)))


def test_an_endpoint_that_does_not_know_the_model_wants_one(chat: Chat, capsys: Caught) -> None:
    """Without a person the choice is named, and nothing changes."""
    say(chat, "/endpoint anthropic")

    assert "deepseek-v4-pro is not known at anthropic: /endpoint anthropic MODEL" in capsys.readouterr().err
    assert "deepseek" == chat.session.target.endpoint.id


def test_files_go_along_with_the_next_message(chat: Chat, referee: Referee, capsys: Caught, tmp_path: Path) -> None:
    """A text is quoted under its name, a picture is a part; what the dialect has no place for is refused at once."""
    (tmp_path / "notes.txt").write_text("A note.\n")
    (tmp_path / "cat.png").write_bytes(b"picture")
    (tmp_path / "film.bin").write_bytes(b"\xff\xfe\x00")
    chat.session.use(endpoint="kimi", model="kimi-k2.6", base_url=referee.base_url("kimi"), api_key="sk-a-key-of-tests")
    say(chat, f"/attach {tmp_path}/notes.txt {tmp_path}/cat.png", f"/attach {tmp_path}/film.bin", "Look.", "/attach")
    chat.session.use(endpoint="cohere", model="command-a-reasoning-08-2025", api_key="sk-a-key-of-tests")
    (tmp_path / "paper.pdf").write_bytes(b"paper")
    say(chat, f"/attach {tmp_path}/paper.pdf", f"/attach {tmp_path}/notes.txt", "/new", "/attach", "/resume talk")

    printed = capsys.readouterr()
    shown = printed.err
    text, picture = messages(referee)[0]["content"]
    assert "Look.\n\nnotes.txt:\n```\nA note.\n```" == text["text"]
    assert "image_url" == picture["type"]
    assert "attached to the next message: notes.txt, cat.png" in shown
    assert "film.bin is neither text nor" in shown
    assert "nothing is attached" in shown
    assert "not attached in another session: notes.txt" in shown
    assert [] == chat.attached
    assert "\n  [image/png cat.png]\n" in printed.out.partition("> Look.\n")[2]
