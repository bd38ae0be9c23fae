"""Exchanges as playbooks: no server, no socket, no thread, and a log in memory where one is asked."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.proxy.playbook import ANSWER, SSE, Playbook, chunk, question, route, to
from tests.turn.playbook import rule
from thinkback.errors import HeadMovedError, NetworkError, ProviderError, SettingError, StoreError
from thinkback.log.protocol import About
from thinkback.model.blocks import Text
from thinkback.model.rule import Guard
from thinkback.model.target import Settings
from thinkback.proxy import exchange
from thinkback.proxy.events import (
    Choose,
    End,
    Head,
    Interrupt,
    LookUp,
    NextPlace,
    Receive,
    Route,
    Send,
    Settle,
    Sleep,
    Store,
    Unavailable,
    Write,
)
from thinkback.proxy.request_view import Client
from thinkback.wire.writing import Problem

MISSING = "The reasoning_content in the thinking mode must be passed back to the API."
WHOLE = "request response reasoning assistant turn_ended"
JSON = Head(200, {"content-type": "application/json"})
GONE = NetworkError("gone", details={"phase": "network"})


def first() -> Playbook:
    """A question that was answered and stored."""
    return Playbook(question()).routes(route()).answers(*ANSWER).keeps(WHOLE).ends()


def test_what_came_goes_out_and_the_end_follows_the_record() -> None:
    """The bytes of the upstream, its last event behind the step."""
    play = Playbook(question()).routes(route()).answers(*ANSWER)

    assert b"".join(ANSWER[:2]) in play.body
    assert b"[DONE]" not in play.body
    play.keeps(WHOLE).ends()
    assert b"".join(ANSWER) == play.body
    assert (200, "not-needed") == (play.status, play.headers["thinkback-reattach"])


def test_a_conversation_is_recognised_and_its_reasoning_goes_back() -> None:
    """By what a client echoes, which forgot the reasoning; the answer continues the same session."""
    before = first()
    play = Playbook(question("Why?", "42.", "And?"), log=before.log) << LookUp
    play.asks().routes(route()).answers(*ANSWER).keeps(WHOLE).ends()

    assert "Hm." == play.sent[0]["messages"][1]["reasoning_content"]
    assert "complete" == play.headers["thinkback-reattach"]
    assert before.headers["thinkback-session"] == play.headers["thinkback-session"]


def test_a_refusal_about_reasoning_is_repaired() -> None:
    """Stored as what it was, planned again, sent again; the client reads one answer."""
    forgetful = route(rule(open_turn="may", later="may", missing=("placeholder",)))
    play = Playbook(question("Why?", "42.", "And?")).asks().routes(forgetful)
    play.refuses(400, MISSING).keeps("request repair") << Settle >> Settings() << Send
    play.answers(*ANSWER).keeps(WHOLE).ends()

    assert [False, True] == ["reasoning_content" in sent["messages"][1] for sent in play.sent]
    assert (200, 2, b"".join(ANSWER)) == (play.status, play.exchange.report().attempts, play.body)


def test_a_stream_that_breaks_off_ends_in_an_error_of_the_dialect() -> None:
    """What arrived is stored as incomplete first."""
    play = Playbook(question()).routes(route()) >> SSE
    play << Receive >> ANSWER[0] << Receive >> GONE
    play.keeps("request response reasoning turn_ended").ends()

    assert ANSWER[0] in play.body
    assert b'"error"' in play.body
    assert "network" == play.exchange.report().failure


def test_a_client_that_leaves_ends_the_turn_and_what_came_is_stored() -> None:
    """Nothing more is written."""
    play = Playbook(question()).routes(route()) >> SSE
    play.stops_at = b"42."
    play << Receive >> ANSWER[0] << Receive >> ANSWER[1] << Write >> Interrupt("client_gone")
    play.keeps(WHOLE)

    assert play.open is None
    assert "client_gone" == play.exchange.report().failure


@pytest.mark.parametrize("said", [b"", b"4"])
@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic"])
def test_reasoning_that_must_not_come_is_refused_before_it_reaches_the_client(
    dialect: str, streams: bool, said: bytes
) -> None:
    """In the client's dialect, whether the upstream's bytes pass or not, by a status that no SDK sends again; the
    rest of a stream is not read.
    """
    body = {**question(), "stream": streams, "max_tokens": 100}
    play = Playbook(body, front=dialect).routes(route(), Settings(strict=True))
    if streams:
        play >> SSE
        for piece in (*([chunk(content=said.decode())] if said else []), ANSWER[0]):
            play << Receive >> piece
        play << Store
    else:
        whole = {"choices": [{"message": {"content": "42.", "reasoning_content": "Hm."}, "finish_reason": "stop"}]}
        play.answers(json.dumps(whole).encode(), head=Head(200, {"content-type": "application/json"}))
    before = "assistant " if said and streams else ""
    play.keeps(f"request response {before}reasoning {'' if streams else 'assistant '}turn_ended")
    assert isinstance(play.command, End)
    text = (play.body + play.command.data).decode()

    assert "Hm." not in text
    assert "reasoning.strict" in text
    assert ("event: error" in text) == (streams and said != b"" and dialect == "anthropic")
    assert play.status == (200 if streams and said else 400)


def left(play: Playbook) -> Playbook:
    """A question whose client leaves in the middle of the answer, which is stored as far as it came."""
    play.routes(route()) >> SSE
    play.stops_at = b"so far and"
    play << Receive >> ANSWER[0] << Receive >> chunk(content="It is cold so far and")
    return play << Write >> Interrupt("client_gone")


@pytest.mark.parametrize("kept", ["It is cold so far and", "It is cold", " It  is"])
def test_an_answer_that_its_client_left_is_no_missing_one(kept: str) -> None:
    """It may be the first of its session, and the client may have read some of it only. What the client has of it goes
    on as it says it, and counts as known from then on.
    """
    before = left(Playbook(question())).keeps(WHOLE)
    play = Playbook(question("Why?", kept, "And?"), log=before.log).asks().routes(route()).answers(*ANSWER)
    play.keeps(WHOLE).ends()
    again = Playbook(question("Why?", kept, "And?", "42.", "So?"), log=before.log)
    left(again.asks()).keeps(WHOLE)
    last = Playbook(question("Why?", kept, "And?", "42.", "So?", "It", "Well?"), log=before.log)
    last.asks().routes(route()).answers(*ANSWER).keeps(WHOLE).ends()

    assert [kept, "And?"] == [message["content"] for message in play.sent[0]["messages"][1:]]
    assert ["complete"] * 2 == [each.headers["thinkback-reattach"] for each in (play, last)]
    assert "Hm." == last.sent[0]["messages"][3]["reasoning_content"]
    (session,) = before.log.list_sessions()
    assert session.id == play.headers["thinkback-session"] == last.headers["thinkback-session"]
    assert ["main"] == [branch.name for branch in before.log.refs.list(session.id)]


CALL: dict[str, Any] = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
NOT_SEEN: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
SEEN_CALL: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "7"},
]


@pytest.mark.parametrize(
    ("delta", "kept"),
    [({}, []), ({}, NOT_SEEN), ({"tool_calls": [{"index": 0, **CALL}]}, SEEN_CALL)],
    ids=["nothing", "an empty text", "a call"],
)
@pytest.mark.parametrize(
    "earlier", [[], [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}]]
)
def test_an_answer_that_its_client_left_without_a_word_goes_on(
    delta: dict[str, Any], kept: list[dict[str, Any]], earlier: list[dict[str, Any]]
) -> None:
    """With reasoning alone, or with a whole call, in the first turn too: one session, in which nothing is missing, and
    nothing that was said goes twice.
    """
    asked = [*earlier, {"role": "user", "content": "Why?"}]
    before = Playbook(question() | {"messages": asked}).asks().routes(route()) >> SSE
    before.stops_at = b"Hm." if not delta else b"tool_calls"
    before << Receive >> ANSWER[0]
    if delta:
        before << Receive >> chunk(**delta)
    before << Write >> Interrupt("client_gone")
    before.keeps(f"request response reasoning {'tool_call ' if delta else ''}turn_ended")
    plays: list[Playbook] = []
    for more in (kept, [{"role": "assistant", "content": "42."}]):
        asked = [*asked, *more, {"role": "user", "content": f"{len(plays)}?"}]
        play = Playbook(question() | {"messages": asked}, log=before.log).asks().routes(route()).answers(*ANSWER)
        plays.append(play.keeps(WHOLE).ends())

    for play in plays:
        assert "complete" == play.headers["thinkback-reattach"]
    assert "Hm." == plays[1].sent[0]["messages"][-2]["reasoning_content"]
    said = [(one["role"], one.get("content")) for one in plays[1].sent[0]["messages"]]
    assert [(one["role"], one.get("content")) for one in asked] == said
    assert 1 == len(before.log.list_sessions())


def test_a_first_question_that_is_longer_than_a_left_one_is_a_conversation_of_its_own() -> None:
    """Where its client had an answer to see, or said something else."""
    before = left(Playbook(question())).keeps(WHOLE)
    for first in ("Why?", "Who?"):
        asked = [{"role": "user", "content": text} for text in (first, "And?")]
        play = Playbook(question() | {"messages": asked}, log=before.log).asks().routes(route()).answers(*ANSWER)
        play.keeps(WHOLE).ends()
        assert "complete" != play.headers["thinkback-reattach"]
    assert 3 == len(before.log.list_sessions())


@pytest.mark.parametrize("said", ["It was cold", "It is cold so far and more", ""])
def test_other_words_than_those_of_a_left_answer_are_the_clients(said: str) -> None:
    """They are an answer of nobody known."""
    before = left(Playbook(question())).keeps(WHOLE)
    play = Playbook(question("Why?", said, "And?"), log=before.log).asks().routes(route()).answers(*ANSWER)
    play.keeps(WHOLE).ends()
    assert "complete" != play.headers["thinkback-reattach"]
    assert 2 == len(before.log.list_sessions())


def test_pieces_may_be_taken_with_no_command_around_each() -> None:
    """From the second on: with the first there is more to do. The step and the bytes are the same."""
    play = Playbook(question()).routes(route()) >> SSE << Receive
    assert play.exchange.take(ANSWER[0]) is None
    play >> ANSWER[0] << Receive
    taken = [play.exchange.take(piece) for piece in ANSWER[1:]]
    play << Receive >> b""
    play.keeps(WHOLE).ends()

    *passed, held = ANSWER[1:]
    assert [*passed, b""] == taken
    assert b"".join((ANSWER[0], held)) == play.body


@pytest.mark.parametrize("size", [1, 5000])
def test_what_passes_is_read_together_and_all_of_it_when_the_client_leaves(size: int) -> None:
    """A piece that was not read when it passed is in the record, however large pieces are."""
    words = "so " * size
    play = Playbook(question()).routes(route()) >> SSE << Receive >> chunk(content=words)
    for _ in range(20):
        assert chunk(content=words) == play.exchange.take(chunk(content=words))
    play << Receive >> Interrupt("client_gone") << Store
    store = play.command
    assert isinstance(store, Store)
    said = [draft.value.text for draft in store.step.drafts if isinstance(draft.value, Text)]

    assert [words * 21] == said


def test_a_response_that_is_written_anew_is_read_as_it_comes() -> None:
    """Nothing waits for more to be read with it."""
    place = route()
    endpoint = msgspec.structs.replace(place.target.endpoint, dialect="anthropic")
    place = msgspec.structs.replace(place, target=msgspec.structs.replace(place.target, endpoint=endpoint))
    began = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    words = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        for text in ("forty", "-two", ".")
    ]
    *before, last = (b"data: " + msgspec.json.encode(event) + b"\n\n" for event in (began, *words))
    play = Playbook(question(max_tokens=9)).routes(place) >> SSE
    for event in before:
        play << Receive >> event

    assert b"forty" in play.body
    assert b"-two" in (play.exchange.take(last) or b"")  # the writer holds the last piece back


def test_a_server_that_ends_says_so_behind_what_was_sent() -> None:
    """The step is stored, then the client reads why."""
    play = Playbook(question()).routes(route()) >> SSE
    play << Receive >> ANSWER[0] << Receive >> Interrupt("cancelled", Problem(503, "restarting"))
    play.keeps("request response reasoning turn_ended").ends()

    assert b"restarting" in play.body
    assert "cancelled" == play.exchange.report().failure


def test_a_client_that_left_twice_is_left_alone() -> None:
    """An interrupt while the end is stored, and one behind the end, lead nowhere."""
    play = Playbook(question()).routes(route()) >> SSE
    play << Receive >> ANSWER[0] << Receive >> Interrupt("cancelled") << Store >> Interrupt("cancelled")
    assert play.open is None
    play >> Interrupt("cancelled")
    assert play.open is None


def test_a_place_that_does_not_answer_is_followed_by_the_next() -> None:
    """And where there is none, it is asked again in a while."""
    play = Playbook(question()).routes(route()) >> GONE << NextPlace >> route(name="cousin")
    play.keeps("request") << Settle >> Settings() << Send >> GONE << NextPlace >> None << Sleep >> None
    play << Settle >> Settings() << Send
    play.answers(*ANSWER).keeps(WHOLE).ends()

    assert (3, 200) == (play.exchange.report().attempts, play.status)


def test_another_writer_makes_it_a_branch() -> None:
    """The same step, on a branch of its own, from the same place."""
    play = Playbook(question()).routes(route()).answers(*ANSWER) << Store
    once = play.command
    play >> HeadMovedError("moved") << Store
    again = play.command
    assert isinstance(once, Store)
    assert isinstance(again, Store)
    assert once.entry is not None
    assert again.entry is not None
    assert (f"main-{once.entry.step[:8]}", "main") == (again.entry.branch, again.entry.via)
    (play >> True).ends()


def test_a_log_in_trouble_is_done_without() -> None:
    """The request is taken for the first of its conversation, and its client reads that."""
    play = Playbook(question("Why?", "42.", "And?")) << LookUp >> Unavailable()
    play.routes(route()).answers(*ANSWER) << Store >> False
    play.ends()

    told = play.headers["thinkback-reattach"], play.headers["thinkback-degraded"]
    assert ("unavailable", "store") == told
    assert play.exchange.report().degraded


@pytest.mark.parametrize("at", ["before", "behind"])
def test_a_log_that_fails_is_an_error_of_the_dialect(at: str) -> None:
    """Instead of a response, or behind the part that went out."""
    broken = StoreError("disk")
    if at == "before":
        play = Playbook(question("Why?", "42.", "And?")) << LookUp >> broken
    else:
        play = Playbook(question()).routes(route()).answers(*ANSWER) << Store >> broken
    play.ends()

    assert (503 if at == "before" else 200) == play.status
    assert b"cannot store" in play.body
    assert "store" == play.exchange.report().failure


def test_what_is_wrong_with_a_request_is_an_error_before_anything_is_looked_up() -> None:
    """What is no request, too much of one, and what nobody can answer."""
    assert b"missing" in (Playbook({"messages": []}) << End).ends().body
    assert b"1000 are allowed" in (Playbook(question(*["a"] * 1001)) << End).ends().body
    limited = Client("default", "k1", limited=True)
    play = Playbook(question(models=["other"]), client=limited).ends()
    assert (403, "refused") == (play.status, play.exchange.report().failure)


def test_settings_that_are_refused_end_the_turn() -> None:
    """The question is stored with how it ended."""
    play = Playbook(question()) << Choose >> route() << Settle >> SettingError("no such setting")
    play.keeps("turn_ended").ends()

    assert (400, b"no such setting") == (play.status, json.loads(play.body)["error"]["message"].encode())


def test_a_refusal_that_stands_is_what_the_client_reads() -> None:
    """In the provider's words."""
    play = Playbook(question()).routes(route()).refuses(400, "bad temperature").keeps("request turn_ended").ends()

    assert (400, ProviderError.kind) == (play.status, play.exchange.report().failure)
    assert b"bad temperature" in play.body


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        (429, {"retry-after": "7200"}, "7200"),
        (429, {"retry-after": "Mon, 02 Feb 2026 04:40:00 GMT"}, "7200"),
        (503, {"retry-after": "600.2"}, "601"),
        (500, {"retry-after": "300"}, "300"),
        (429, {"retry-after": "inf"}, "5"),
        (400, {"retry-after": "300"}, None),
    ],
)
def test_a_client_is_told_how_long_the_provider_wants_to_be_left_alone(
    status: int, said: dict[str, str], told: str | None
) -> None:
    """A client that comes back earlier is refused again."""
    body = json.dumps({"error": {"message": "the daily limit is reached"}}).encode()
    head = Head(status, {"content-type": "application/json", **said})
    play = Playbook(question()).routes(route()).answers(body, head=head)
    if status != 400:
        play << NextPlace >> None
    play.keeps("request turn_ended").ends()

    assert (status, told) == (play.status, play.headers.get("retry-after"))


def test_a_response_that_is_too_large_is_not_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came is stored, and the client reads that it was too much."""
    monkeypatch.setattr(exchange, "LARGEST", 100)
    play = Playbook(question()).routes(route()) >> SSE
    play << Receive >> ANSWER[0] << Receive >> chunk(content="a" * 100)
    play.keeps("request response reasoning turn_ended").ends()

    assert b"more than 100 bytes" in play.body


def test_a_fault_of_ours_is_told_and_raised() -> None:
    """Whoever drives the exchange hears of it, once its client was answered."""
    play = Playbook(question()) << Choose >> LookupError("a fault") << End
    with pytest.raises(LookupError):
        play >> None
    assert 500 == play.status


def test_names_of_what_an_account_keeps_are_refused_where_all_keys_share_it() -> None:
    """Unless the place passes them, or nobody else uses it."""
    body = question(prompt={"id": "p1"}, previous_response_id="r", container="c", store=True)
    shared = Playbook(body) << Choose >> route()
    assert isinstance(shared.open, Settle | Store)
    own = Playbook(body, client=Client("default", "open", alone=True)) << Choose >> route()
    assert isinstance(own.open, Settle)


def test_a_session_says_which_program_began_it_and_where() -> None:
    """By the user agent and what the program tells the model; later requests change nothing."""
    text = "<environment_context><cwd>/home/me/shop</cwd></environment_context>"
    play = Playbook(question(f"{text}\nWhy?"), agent="codex_exec/0.169.0").routes(route()).answers(*ANSWER)
    play.keeps(WHOLE).ends()
    other = Playbook(question(f"{text}\nWhy?", "42.", "And?"), log=play.log) << LookUp
    other.asks().routes(route()).answers(*ANSWER).keeps(WHOLE).ends()

    (summary,) = play.log.summaries().values()
    assert (About("codex", "shop", "/home/me/shop"), "Why?") == (summary.about, summary.tally.title)


def test_a_session_of_an_unknown_agent_says_so_as_well() -> None:
    """Its product, the directory that its prompt names, and a title without what it writes before the words."""
    body = question("<current_datetime>2026-11-23T20:00Z</current_datetime>\n\nWhy?")
    body["messages"].insert(0, {"role": "system", "content": "Be brief.\nCurrent working directory: /home/me/shop\n"})
    play = Playbook(body, agent="acme-agent/1.0 openai/2").routes(route()).answers(*ANSWER)
    play.keeps(WHOLE).ends()
    (summary,) = play.log.summaries().values()
    assert (About("acme-agent", "shop", "/home/me/shop"), "Why?") == (summary.about, summary.tally.title)


def test_what_may_not_be_recorded_is_kept_apart() -> None:
    """The entry has no content; the response is packed for whoever may keep it."""
    text = "<environment_context><cwd>/home/me/shop</cwd></environment_context>"
    play = (
        Playbook(question(text), client=Client("default", "k1", "metadata")).routes(route()).answers(*ANSWER) << Store
    )
    store = play.command
    assert isinstance(store, Store)
    assert store.entry is not None
    assert store.kept is not None
    assert b"Hm." in store.kept[1]
    assert all(b"Hm." not in commit.payload for commit in store.entry.commits)
    assert About() == store.entry.about
    (play >> True).ends()


def test_nothing_is_recorded_where_recording_is_off() -> None:
    """The step is there for whoever counts."""
    play = Playbook(question(), client=Client("default", "k1", "off")).routes(route()).answers(*ANSWER) << Store
    store = play.command
    assert isinstance(store, Store)
    assert (None, None) == (store.entry, store.kept)
    (play >> True).ends()
    assert "" == play.exchange.report().session


def placed(**changed: Any) -> Route:
    """A place whose target is ``changed``."""
    place = route(changed.pop("rule", FREE))
    return msgspec.structs.replace(place, target=msgspec.structs.replace(place.target, **changed))


FREE = rule(guard=Guard(account=True))
AGAIN = question("Why?", "42.", "And?")


def test_reasoning_of_another_account_is_reported_as_dropped() -> None:
    """It was recognised, and could have gone; that of another model could not."""
    mine = placed(account="mine", account_known=True)
    told = []
    for place in (mine, placed(account="theirs", account_known=True), placed(account="mine", model="another")):
        before = Playbook(question()).routes(mine).answers(*ANSWER).keeps(WHOLE).ends()
        told.append(Playbook(AGAIN, log=before.log).asks().routes(place).answers(*ANSWER).keeps(WHOLE).ends())
    dropped = "partial; dropped=1; why=minted under another account"
    assert ["complete", dropped, "complete"] == [each.headers["thinkback-reattach"] for each in told]
    assert ["complete", dropped, "complete"] == [each.exchange.report().reattach for each in told]


def test_reasoning_that_was_refused_is_reported_as_dropped() -> None:
    """Where the provider would not have it, in the answer that is given then, and in each later one."""
    before = Playbook(question()).routes(placed()).answers(*ANSWER).keeps(WHOLE).ends()
    play = Playbook(AGAIN, log=before.log).asks().routes(placed())
    play.refuses(400, "messages.1: invalid signature").keeps("request repair") << Settle >> Settings() << Send
    play.answers(*ANSWER).keeps(WHOLE).ends()
    later = Playbook(question("Why?", "42.", "And?", "42.", "So?"), log=before.log).asks().routes(placed())
    later.answers(*ANSWER).keeps(WHOLE).ends()

    assert ["Hm.", " "] == [sent["messages"][1]["reasoning_content"] for sent in play.sent]
    told = "partial; dropped=1; why=refused by the provider"
    assert [told, told] == [each.headers["thinkback-reattach"] for each in (play, later)]


def test_what_nobody_knows_is_missing_and_not_dropped() -> None:
    """A message of the client's that goes as text counts once."""
    strict = rule(missing=("flatten-exchange-to-text",))
    calls = [{"id": "a1b2c3d4e5", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    asked = question("Why?")
    asked["messages"] += [{"role": "assistant", "tool_calls": calls}, {"role": "tool", "tool_call_id": "a1b2c3d4e5"}]
    asked["messages"][-1]["content"] = "7"
    play = Playbook(asked).asks().routes(route(strict)).answers(*ANSWER).keeps(WHOLE).ends()
    assert "none; missing=1" == play.headers["thinkback-reattach"]
    assert all("tool_calls" not in message for message in play.sent[0]["messages"])


@pytest.mark.parametrize(
    ("brought", "told"), [({"reasoning_content": "Hm."}, "complete; own=1"), ({}, "unknown; brought=1")]
)
def test_reasoning_that_the_client_itself_brings_is_not_missing(brought: dict[str, str], told: str) -> None:
    """Nothing is recorded of it, and it goes where it stood, also when the conversation goes on."""
    body = question("Why?", "42.", "And?")
    body["messages"][1] |= brought
    play = Playbook(body).asks().routes(route()).answers(*ANSWER)
    play.keeps(WHOLE).ends()
    assert brought.items() <= play.sent[0]["messages"][1].items()
    assert told == play.headers["thinkback-reattach"]

    body["messages"] += [{"role": "assistant", "content": "42."}, {"role": "user", "content": "So?"}]
    again = Playbook(body, log=play.log).asks().routes(route()).answers(*ANSWER)
    again.keeps(WHOLE).ends()
    assert ["complete", *told.split("; ")[1:]] == again.headers["thinkback-reattach"].split("; ")


@pytest.mark.parametrize("said", ["Let me see!", "", None])
def test_an_answer_is_known_by_the_ids_that_the_gateway_gave_its_calls(said: str | None) -> None:
    """Gemini gives none; the client changed the text beside the call, or dropped it."""
    place = to("gemini", "/models/{model}:generateContent")
    call: dict[str, Any] = {"functionCall": {"name": "look", "args": {"at": "it"}}, "thoughtSignature": "c2lnbmVk"}
    content = {"role": "model", "parts": [{"text": "Let me look."}, call]}
    reply = json.dumps({"candidates": [{"content": content, "finishReason": "STOP"}]}).encode()
    kept = "request response assistant tool_call"
    first = Playbook(question(stream=False)).asks().routes(place).answers(reply, head=JSON).keeps(kept).ends()
    (given,) = json.loads(first.body)["choices"][0]["message"]["tool_calls"]
    assert given["id"]

    echo = {"role": "assistant", "content": said, "tool_calls": [given]}
    result = {"role": "tool", "tool_call_id": given["id"], "content": "Seen."}
    body = question(stream=False)
    body["messages"] += [echo, result]
    play = Playbook(body, log=first.log).asks().routes(place).answers(reply, head=JSON).keeps(kept).ends()
    assert "complete" == play.headers["thinkback-reattach"]
    assert first.headers["thinkback-session"] == play.headers["thinkback-session"]
    assert {"functionResponse"} == {key for part in play.sent[0]["contents"][-1]["parts"] for key in part}
