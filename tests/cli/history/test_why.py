"""``why``: the decisions of the last request and of the next one."""

from __future__ import annotations

import json
import re

import pytest

import thinkback
from tests.cli.command import Command
from tests.cli.conftest import ENCRYPTED, SIGNATURE, Inside
from tests.servers.gateway.harness.engines import KEY, Plays, ask, engine
from thinkback.stores import open_store


def test_the_last_request_is_explained_block_by_block(talked: Command) -> None:
    """Each earlier block of reasoning stands with action, message, rule and reason; the counts follow."""
    with thinkback.open(talked.db) as store:
        (decision,) = store.session("talk").why()

    done = talked("why")

    assert 0 == done.code
    assert "\nThe one block of earlier reasoning went back: the endpoint requires it.\n" in done.out
    assert [decision.block[:8], "reasoning", "field", "1"] in [line.split()[:4] for line in done.out.splitlines()]
    assert "https://api-docs.deepseek.com/guides/thinking_mode (row of 20" in " ".join(done.out.split())
    assert decision.reason in " ".join(done.out.split())
    told = " ".join(done.out.split())
    assert re.search(
        r"size of the request: about \d+ tokens of 1,000,000, about \d+ of them reasoning \(estimated", told
    )
    again = talked("why", "--next").out
    assert "\nAll 2 blocks of earlier reasoning will go back: the endpoint requires it.\n" in again
    assert 1 == again.count("each of them: goes back in reasoning_content") == again.count("goes back in")


def test_the_explanation_as_json_says_which_request_it_is_about(talked: Command) -> None:
    """``--json`` has target, decisions, counts and controls left out; ``--next`` is about the next request."""
    last, following = talked("why", "talk", "--json").json, talked("why", "--next", "--json").json

    assert ("last", "next") == (last["request"], following["request"])
    assert ("deepseek", "deepseek-v4-pro", "deepseek-v4") == (last["endpoint"], last["model"], last["rule"])
    assert (1, 2) == (len(last["decisions"]), len(following["decisions"]))
    assert {"raw", "effective", "effective_reasoning", "limit", "limit_asked", "calibrated"} == last["counts"].keys()
    assert [] == last["dropped"]


def test_the_next_request_may_go_elsewhere(talked: Command) -> None:
    """With another endpoint and model the decisions are theirs, and no key is needed to ask."""
    place = ("--endpoint", "groq", "--model", "qwen/qwen3-32b")

    done = talked("why", "--next", *place, "--json")

    assert "groq" == done.json["endpoint"]
    assert {"drop"} == {decision["action"] for decision in done.json["decisions"]}
    shown = " ".join(talked("why", "--next", *place).out.split())
    assert "None of the 2 blocks of earlier reasoning will go back: " in shown


def test_a_session_without_a_request_names_the_way_to_its_next(inside: Inside) -> None:
    """By its name: the session used last may be another one by then."""
    with thinkback.open(inside.db, rules={}, settings={}) as store:
        store.session("by hand").reasoning("A thought.")
    done = inside("why", "by hand")

    assert 2 == done.code
    assert f"`thinkback why --db {inside.db} --next 'by hand'` shows the next one" in done.err


def test_what_nobody_has_confirmed_of_a_row_is_told(talked: Command) -> None:
    """The row's doubts stand under it, with the command that settles them; a row without any says nothing."""
    place = ("--endpoint", "gemini-interactions", "--model", "gemini-3.5-flash")
    doubt = "that a missing step is refused"
    told = " ".join(talked("why", "--next", *place).out.split())

    assert f"rule gemini-interactions, in part unconfirmed unconfirmed: open_turn: {doubt}" in told
    assert "thinkback probe gemini-interactions --model gemini-3.5-flash" in told
    assert doubt == talked("why", "--next", *place, "--json").json["unconfirmed"]["open_turn"]
    assert "unconfirmed" not in talked("why", "--next").out


def test_a_control_that_cannot_be_sent_is_told(talked: Command) -> None:
    """A setting that the endpoint has no words for is listed with the reason."""
    with thinkback.open(talked.db) as store:
        store.session("talk").set("reasoning.maxTokens", 100)

    assert "not sent: reasoning.maxTokens = 100: " in talked("why", "--next").out
    assert "reasoning.maxTokens" == talked("why", "--next", "--json").json["dropped"][0]["key"]


def test_a_session_without_a_request_has_nothing_to_explain(command: Command) -> None:
    """Nothing was sent, and nobody said where the next request goes: both are exit code 2 with advice."""
    with thinkback.open(command.db) as store:
        store.session("empty")

    assert 2 == command("why").code
    place = ("--endpoint", "deepseek", "--model", "deepseek-v4-pro")
    assert "There is no earlier reasoning that could go back." in command("why", "--next", *place).out
    assert "give --endpoint" in command("why", "--next").err


def test_what_the_provider_reported_stands_beside_the_decisions(command: Command) -> None:
    """What it removed is told with the block it is about, else by itself, and so are its edits and our settings."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE}
    answer = {"type": "message", "id": "m", "role": "assistant", "model": "served", "stop_reason": "end_turn"}
    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session("talk", endpoint="anthropic", model="claude-opus-4-6", api_key="k")
        session.set("reasoning.effort", "high")
        for told in (
            {"content": [thinking, {"type": "text", "text": "So."}]},
            {
                "content": [{"type": "text", "text": "And so."}],
                "input_transformations": [
                    {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "not_readable"},
                    {"type": "thinking_dropped", "path": "messages.9.content.0", "reason": "elsewhere"},
                ],
                "context_management": {"applied_edits": [{"type": "clear", "cleared_thinking_turns": 2}]},
            },
        ):
            session.wire.plan("Why?", stream=False)
            session.wire.ingest(json.dumps({**answer, **told}))

    shown, found = " ".join(command("why").out.split()), command("why", "--json").json

    assert "the provider reported: thinking_dropped: not_readable" in shown
    assert "the provider reported: messages.9.content.0: thinking_dropped: elsewhere" in shown
    assert "the provider reported: clear cleared 2 thinking turns" in shown
    assert "The provider reported of it: thinking_dropped: not_readable." in shown
    assert "sent: reasoning.effort = high" in shown
    assert SIGNATURE not in shown
    assert [("reasoning.effort", "emitted")] == [(c["key"], c["state"]) for c in found["controls"]]
    assert (2, ["clear cleared 2 thinking turns"]) == (len(found["report"]["removed"]), found["report"]["edits"])
    assert {"thinking_dropped: not_readable"} == {d.get("reported", "") for d in found["decisions"]}


def test_stand_ins_are_counted_beside_what_goes(talked: Command) -> None:
    """Where several things are done, each is counted."""
    with thinkback.open(talked.db, rules={}, settings={}) as store:
        session = store.session("talk", endpoint="groq", model="openai/gpt-oss-120b", api_key="k")
        session.wire.plan("And now?", stream=False)
        message = {"role": "assistant", "content": "Now.", "reasoning": "Hm."}
        session.wire.ingest(json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}))
    place = ("--endpoint", "deepseek", "--model", "deepseek-v4-pro")

    shown = " ".join(talked("why", "--next", *place).out.split())

    assert "decisions: " in shown
    assert "None of the 3 blocks of earlier reasoning will go back: it was written by http://127.0.0.1:" in shown
    assert "https://api.deepseek.com (2); it was written by https://api.groq.com/openai/v1, and the target is" in shown
    assert "In 3 places a placeholder will stand in for reasoning that the endpoint demands." in shown


def test_what_the_provider_keeps_is_told(command: Command) -> None:
    """With server state only what is new is sent, and the last response that it keeps is named."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": ENCRYPTED}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5", "output": [item, said]}
    with thinkback.open(command.db, rules={}, settings={}) as store:
        session = store.session("talk", endpoint="openai", model="gpt-5", api_key="k")
        session.set("session.serverState", True)
        session.wire.plan("Why?", stream=False)
        session.wire.ingest(json.dumps(body))

    shown, told = " ".join(command("why", "--next").out.split()), command("why", "--next", "--json").json

    assert "the provider keeps the conversation up to response resp_1" in shown
    assert "The one block of earlier reasoning is not sent again: " in shown
    assert ("resp_1", {"server"}) == (told["kept"], {decision["action"] for decision in told["decisions"]})


def test_a_commit_is_explained(talked: Command) -> None:
    """By its reasoning, and by the request that brought it; a request by its decisions."""
    commits = talked("log", "--json").json
    call, request = (next(c for c in commits if c["kind"] == kind) for kind in ("tool_call", "request"))
    told = talked("why", call["hash"][:10], "--json").json
    led = [commit["hash"] for commit in commits if commit["kind"] == "reasoning"][:1]
    assert (led, None) == ([thought["hash"] for thought in told["reasoning"]], told["unknown"])
    shown = talked("why", call["hash"][:10]).out
    assert f"[reasoning] {led[0][:8]}" in shown
    assert "the request that brought it: deepseek" in shown
    assert "the request that brought it: deepseek" in talked("why", request["hash"]).out
    assert 2 == talked("why", "ffffffff").code
    user = next(commit for commit in commits if commit["kind"] == "user")
    assert "not part of a response" in talked("why", user["hash"]).err


def test_what_a_gateway_did_not_find_is_told(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation that began elsewhere came without its reasoning, and the record of the request says so."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    answer = {"id": "c", "choices": [{"index": 0, "message": {"content": "Yes."}, "finish_reason": "stop"}]}
    transport = Plays(lambda body: (200, "application/json", [json.dumps(answer).encode()]))
    made = engine(transport, {"deepseek": "http://deepseek.test"}, log=open_store(str(command.db)))
    messages = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "Because."},
        {"role": "user", "content": "Really?"},
    ]
    ask(made, "openai-chat", {"model": "deepseek-v4-pro", "messages": messages})
    made.logs.close()

    assert "reasoning that was not found, by message: 1: unknown" in command("why").out
    assert "1: unknown" == command("why", "--json").json["not_found"]


def test_how_one_of_two_conversations_was_chosen_is_told(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest of those that look the same; of an answer in the middle of both nobody says whose it is."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    answer = {"id": "c", "choices": [{"index": 0, "message": {"content": "Yes."}, "finish_reason": "stop"}]}
    transport = Plays(lambda body: (200, "application/json", [json.dumps(answer).encode()]))
    made = engine(transport, {"deepseek": "http://deepseek.test"}, log=open_store(str(command.db)))
    asked = [{"role": "user", "content": "Why?"}]
    echoed = [*asked, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Really?"}]
    longer = [*echoed, *echoed[1:], *echoed[1:]]
    for messages in (asked, asked, echoed):
        ask(made, "openai-chat", {"model": "deepseek-v4-pro", "messages": messages})
    told = command("why").out
    assert "2 conversations have these words; the newest with equal system and tools was chosen" in told
    assert "2 conversations" in command("why", "--json").json["chosen"]

    for messages in (echoed, longer[:5], longer[:5], longer[2:]):
        ask(made, "openai-chat", {"model": "deepseek-v4-pro", "messages": messages})
    made.logs.close()
    told = command("why").out
    assert "3: ambiguous" in told
    assert "the conversation before them is none that was recorded" in told


def test_what_became_of_the_prompt_cache_is_told(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a gateway too, where a client that changes its first message goes on on another line."""
    monkeypatch.setenv("THINKBACK_TEST_KEY", KEY)
    hits = iter((9_000, 9_000, 0, 0))
    said = iter(("Red.", "Blue.", "Green.", "Grey."))

    def answer(body: bytes) -> tuple[int, str, list[bytes]]:
        usage = {"prompt_tokens": 9_100, "completion_tokens": 2, "prompt_cache_hit_tokens": next(hits)}
        choice = {"index": 0, "message": {"role": "assistant", "content": next(said)}, "finish_reason": "stop"}
        return 200, "application/json", [json.dumps({"id": "c", "choices": [choice], "usage": usage}).encode()]

    made = engine(Plays(answer), {"deepseek": "http://deepseek.test"}, log=open_store(str(command.db)))
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "A?"}]
    reports = []
    for at, text in enumerate(("B?", "C?", "D?", "E?")):
        kept = ask(made, "openai-chat", {"model": "deepseek-v4-pro", "messages": messages})
        reports.append(kept.notes.report)
        messages += [kept.json["choices"][0]["message"], {"role": "user", "content": text}]
        if at == 1:
            messages[0] = {"role": "system", "content": "Be long."}
        if at == 2:
            messages[0], messages[1] = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Z?"}
    made.logs.close()

    found = [(report.cached_tokens, report.cache_missed_tokens, report.cache_collapse) for report in reports]
    assert [(9_000, None, ""), (9_000, 0, ""), (0, 9_000, "system"), (0, 9_000, "message")] == found
    lost = "prompt cache: 0 tokens read, 9,000 missed that an earlier request had there: an earlier message changed"
    assert lost in " ".join(command("why").out.split())
    assert {"read": 0, "missed": 9_000, "collapse": "message"} == command("why", "--json").json["cache"]
