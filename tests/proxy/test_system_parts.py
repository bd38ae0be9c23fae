"""System messages of another program: they stand upstream where it has them, whatever it does with them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.compile.test_bound_laws import Sent, expected, is_valid, seen
from tests.proxy.playbook import Playbook, route
from tests.turn.playbook import ENDPOINT, target
from thinkback.log.protocol import Store as Log
from thinkback.model.rule import Rule
from thinkback.model.target import Settings
from thinkback.proxy.events import Head, Route

PARTS = ("A", "B", "C", "D")
HEAD = Head(200, {"content-type": "application/json"})
RECORD = "request response assistant turn_ended"


def bound(**fields: Any) -> Route:
    """A place whose reasoning is bound to what stands before it."""
    row: dict[str, Any] = {
        "form": "native",
        "open_turn": "must",
        "later": "should",
        "missing": ("none",),
        "prefix_bound": True,
    }
    row |= {"system": "late", "need_signature": ("thinking",), "follower": True, **fields}
    rule = Rule(id="bound", endpoint="house", source="the tests", since="2025-01-01", **row)
    place = target(rule, endpoint=msgspec.structs.replace(ENDPOINT, dialect="anthropic", path="/messages"))
    return msgspec.structs.replace(route(), target=place)


def chat(parts: list[tuple[int, str]], turns: int) -> dict[str, Any]:
    """A request of chat completions with system messages, each behind so many others."""
    messages: list[dict[str, str]] = []
    for at in range(2 * turns + 2):
        messages += [{"role": "system", "content": text} for place, text in parts if place == at]
        if at <= 2 * turns:
            messages.append({"role": "assistant" if at % 2 else "user", "content": f"m{at}"})
    return {"model": "thinker", "messages": messages}


def answer_chat(turn: int) -> bytes:
    """What chat completions say in a turn."""
    message = {"role": "assistant", "content": f"m{2 * turn + 1}"}
    return json.dumps(
        {"id": f"c{turn}", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    ).encode()


placed = st.lists(st.tuples(st.integers(0, 7), st.sampled_from(PARTS)), max_size=5)


@given(st.lists(placed, min_size=2, max_size=5))
def test_system_messages_stand_where_their_program_has_them(talks: list[list[tuple[int, str]]]) -> None:
    """They grow, go, come back, change places: what goes upstream is the client's list, and one session has it."""
    log: Log | None = None
    sessions = set()
    for turn, parts in enumerate(talks):
        body = chat([(place, text) for place, text in parts if place <= 2 * turn], turn)
        play = Playbook(body, log=log).asks().routes(route())
        play.answers(answer_chat(turn), head=HEAD).keeps(RECORD).ends()
        assert body["messages"] == [
            {name: each[name] for name in ("role", "content")} for each in play.sent[0]["messages"]
        ]
        log = play.log
        sessions.add(play.headers["thinkback-session"])
    assert 1 == len(sessions)


def test_what_did_not_change_is_not_recorded_again() -> None:
    """Of a prompt that comes back the first commit is meant, with its own bytes; a person's word on one stands."""
    log: Log | None = None
    session = ""
    for turn, parts in enumerate((["A", "B"], ["A", "B"], ["A"], ["A", "B"])):
        play = Playbook(chat([(0, part) for part in parts], turn), log=log).asks().routes(route())
        play.answers(answer_chat(turn), head=HEAD).keeps(RECORD).ends()
        log, session = play.log, play.headers["thinkback-session"]
    assert log is not None
    info = log.find_session(session)
    assert info is not None
    commits = log.read_to(session, info.head.hash)
    about = [commit.kind for commit in commits if commit.kind in ("system", "annotation")]
    assert ["system", "system", "annotation", "annotation"] == about


def claude(system: list[str], turns: int, tools: int = 0) -> dict[str, Any]:
    """A request of a client that forgets all thinking."""
    messages = [{"role": "assistant" if at % 2 else "user", "content": f"m{at}"} for at in range(2 * turns + 1)]
    body = {"model": "thinker", "max_tokens": 99, "messages": messages}
    body |= {"system": [{"type": "text", "text": text} for text in system]} if system else {}
    offered = [{"name": f"t{at}", "input_schema": {"type": "object"}} for at in range(tools)]
    return body | ({"tools": offered} if offered else {})


def answer_claude(turn: int) -> bytes:
    """What Claude says in a turn."""
    content = [
        {"type": "thinking", "thinking": f"t{turn}", "signature": f"SIG{turn}"},
        {"type": "text", "text": f"m{2 * turn + 1}"},
    ]
    message = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "thinker", "content": content}
    return json.dumps({**message, "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}).encode()


class Forgetful:
    """A client of Anthropic's dialect and its conversation; ``made`` has the body that each signature answered."""

    def __init__(self, place: Route, settings: Settings | None = None) -> None:
        self.place, self.settings = place, settings
        self.log: Log | None = None
        self.made: dict[str, Sent] = {}
        self.headers: dict[str, str] = {}

    def ask(self, system: list[str], tools: int = 0, mark: int = -1) -> dict[str, Any]:
        """One more turn: what went upstream."""
        turn = len(self.made)
        body = claude(system, turn, tools)
        body = body if mark < 0 else marked(body, mark)
        play = Playbook(body, log=self.log, front="anthropic").asks()
        play.routes(self.place, self.settings).answers(answer_claude(turn), head=HEAD)
        play.keeps("request response reasoning assistant provider_usage turn_ended").ends()
        self.log, self.headers = play.log, dict(play.headers)
        self.made[f"SIG{turn}"] = seen(json.dumps(play.sent[0]).encode())
        sent: dict[str, Any] = play.sent[0]
        return sent


prompts = st.lists(st.sampled_from(PARTS), max_size=3)


@given(st.lists(st.tuples(prompts, st.integers(0, 2)), min_size=3, max_size=7))
def test_bound_reasoning_goes_where_the_client_sends_what_it_was_made_under(turns: list[tuple[list[str], int]]) -> None:
    """Through an exchange, judged by the bodies alone: what goes is valid, and all that may go does."""
    client = Forgetful(bound())
    for system, tools in turns:
        before = dict(client.made)
        body = client.ask(system, tools)
        assert system == [part["text"] for part in body.get("system", [])]
        now = client.made[f"SIG{len(before)}"]
        places = {f"SIG{turn}": 2 * turn + 1 for turn in range(len(before))}
        assert now.chain() == expected(now, before, places)
        assert all(
            is_valid(value, at, now, before[value], now.chain()[:n]) for n, (value, at) in enumerate(now.thoughts)
        )


@given(st.lists(st.tuples(prompts, st.integers(0, 2)), min_size=3, max_size=7))
def test_where_nothing_is_bound_all_reasoning_goes(turns: list[tuple[list[str], int]]) -> None:
    """Whatever the client does with its system prompt and tools."""
    client = Forgetful(bound(prefix_bound=False, system=""))
    for system, tools in turns:
        body = client.ask(system, tools)
        assert system == [part["text"] for part in body.get("system", [])]
        chain = client.made[f"SIG{len(client.made) - 1}"].chain()
        assert [f"SIG{turn}" for turn in range(len(client.made) - 1)] == chain


def test_prompts_a_c_a() -> None:
    """The fourth request carries the thoughts of the first and the third turn."""
    client = Forgetful(bound())
    for system in ("A", "C", "A", "A"):
        client.ask([system])
    assert ["SIG0", "SIG2"] == client.made["SIG3"].chain()


def test_a_part_may_be_left_behind_the_history_and_that_is_said() -> None:
    """By a setting, where it keeps bound reasoning valid; elsewhere the setting changes nothing."""
    appended = Settings(system_changes="append")
    client = Forgetful(bound(), appended)
    client.ask(["A"])
    body = client.ask(["A", "B"])
    assert ["A"] == [part["text"] for part in body["system"]]
    assert "system" == body["messages"][2]["role"]
    assert ["SIG0"] == client.made["SIG1"].chain()
    assert "appended; kept=1" == client.headers["thinkback-system"]
    for place in (bound(prefix_bound=False, system=""), bound(system="top")):
        client = Forgetful(place, appended)
        client.ask(["A"])
        assert ["A", "B"] == [part["text"] for part in client.ask(["A", "B"])["system"]]
        assert "thinkback-system" not in client.headers


def marked(body: dict[str, Any], at: int) -> dict[str, Any]:
    """A request with cache marks on a part of its system prompt and on a tool."""
    for place in ("system", "tools"):
        body[place][at % len(body[place])]["cache_control"] = {"type": "ephemeral"}
    return body


def test_cache_marks_change_nothing() -> None:
    """They move from request to request, and are the client's; what comes back is what it was made under."""
    client = Forgetful(bound())
    for turn, system in enumerate((["A", "B"], ["A", "C"], ["A", "B"], ["A", "B"])):
        body = client.ask(system, 2, mark=turn)
        assert [turn % 2 == at for at in range(2)] == ["cache_control" in part for part in body["system"]]
    assert ["SIG0", "SIG2"] == client.made["SIG3"].chain()
