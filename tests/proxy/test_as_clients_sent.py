"""What a client sends and a place may not take: it goes as it was sent where the place speaks its dialect, is named
where it goes otherwise, and is refused where the question would be another without it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proxy.playbook import Playbook, to
from thinkback.log.seal import seal
from thinkback.model.commits import Draft, Step
from thinkback.model.target import Decision, Settings
from thinkback.proxy.events import Choose, Route, Send, Settle
from thinkback.session.requests import rebuild

PATHS = {
    "openai-chat": "/chat/completions",
    "openai-responses": "/responses",
    "anthropic": "/messages",
    "gemini": "/models/{model}:generateContent",
    "gemini-interactions": "/interactions",
    "bedrock": "/converse",
    "mistral": "/chat/completions",
    "ollama": "/chat",
    "cohere": "/chat",
}
PLACES = {dialect: to(dialect, path) for dialect, path in PATHS.items()}
ELSEWHERE = sorted(PATHS.keys() - {"openai-chat"})
MESSAGES = {"openai-responses": "input", "gemini": "contents", "gemini-interactions": "input"}
QUESTION: dict[str, Any] = {"role": "user", "content": "What is the weather?"}
CALLING: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a1b2c3d4e", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "f6g7h8i9j", "content": "It is cold in Oslo."}


def planned(messages: list[dict[str, Any]], place: Route, *, front: str = "openai-chat", **params: Any) -> Playbook:
    """The exchange of a request, up to what it sends."""
    body = {"model": "thinker", MESSAGES.get(front, "messages"): messages, **params}
    return Playbook(body, front=front).asks().routes(place)


def going(play: Playbook) -> Send:
    """What is to be sent."""
    assert isinstance(play.open, Send)
    return play.open


def sent(play: Playbook) -> dict[str, Any]:
    """The body that goes upstream."""
    found: dict[str, Any] = json.loads(going(play).body)
    return found


def told(play: Playbook) -> list[Decision]:
    """The decisions about texts in it."""
    return [each for each in going(play).plan.decisions if each.what == "text"]


def left(play: Playbook) -> str:
    """What its record says was left out."""
    return str(going(play).plan.record().target.get("left_out", ""))


def refused(messages: list[dict[str, Any]], place: Route, *, front: str = "openai-chat", **params: Any) -> str:
    """The message of the 400 that a request gets; nothing is sent."""
    body = {"model": "thinker", MESSAGES.get(front, "messages"): messages, **params}
    play = Playbook(body, front=front).asks()
    play << Choose >> place << Settle >> Settings()
    play.keeps("turn_ended").ends()
    assert (400, []) == (play.status, play.sent)
    return str(json.loads(play.body)["error"]["message"])


@pytest.mark.parametrize("messages", [[RESULT], [RESULT, QUESTION], [QUESTION, RESULT]])
def test_a_result_without_its_call_goes_as_it_was_sent(messages: list[dict[str, Any]]) -> None:
    """The provider of its own dialect judges it."""
    play = planned(messages, PLACES["openai-chat"])
    assert messages == sent(play)["messages"]
    assert ("", []) == (left(play), told(play))


@pytest.mark.parametrize("dialect", ELSEWHERE)
@pytest.mark.parametrize("messages", [[RESULT], [RESULT, QUESTION], [QUESTION, RESULT]])
def test_a_result_without_its_call_goes_as_text_elsewhere(messages: list[dict[str, Any]], dialect: str) -> None:
    """What it says is not lost, and the change is named in the header, the decisions and the record."""
    play = planned(messages, PLACES[dialect])
    assert "It is cold in Oslo." in json.dumps(sent(play)[MESSAGES.get(dialect, "messages")])
    (decision,) = told(play)
    assert decision.reason in left(play)
    assert "f6g7h8i9j: its call is not in the request" in decision.reason


@pytest.mark.parametrize("tail", [[], [QUESTION]], ids=["last", "in the middle"])
def test_no_result_is_made_up_where_the_place_speaks_the_clients_dialect(tail: list[dict[str, Any]]) -> None:
    """The provider judges a call without a result."""
    messages = [QUESTION, CALLING, *tail]
    play = planned(messages, PLACES["openai-chat"])
    assert messages == sent(play)["messages"]
    assert ("", []) == (left(play), told(play))


@pytest.mark.parametrize("dialect", ELSEWHERE)
def test_a_result_that_is_made_up_is_named(dialect: str) -> None:
    """Other dialects refuse a call without one, so words stand in for it."""
    play = planned([QUESTION, CALLING, QUESTION], PLACES[dialect])
    assert "interrupted" in json.dumps(sent(play))
    (decision,) = told(play)
    assert decision.reason in left(play)
    assert "the request has none" in decision.reason


def test_why_can_build_a_request_of_results_without_calls_again() -> None:
    """The settings in its record say whose request it was."""
    for place in PLACES.values():
        play = planned([RESULT, QUESTION, CALLING, QUESTION], place)
        resumed = play.exchange._resumed
        assert resumed is not None
        record = going(play).plan.record()
        history = resumed.history
        commits = [*history.commits, *seal(Step("s", (Draft("request", record, "r"),), 1), history.head)]
        again = rebuild(commits)
        assert record.sent_digest == again.record().sent_digest
        assert again.remarks.get("left_out", "") == left(play)


SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "bedrock"])
def test_a_system_part_alone_is_refused_where_it_is_no_message(dialect: str) -> None:
    """Nothing is sent without a message."""
    assert "no message besides its system prompt" in refused([SYSTEM], PLACES[dialect])


def test_a_system_part_alone_passes_where_it_is_a_message() -> None:
    """The provider of its own dialect judges it."""
    assert [SYSTEM] == sent(planned([SYSTEM], PLACES["openai-chat"]))["messages"]


AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
HEARD = {"role": "user", "content": [{"type": "text", "text": "What is said here?"}, AUDIO]}


@pytest.mark.parametrize("dialect", ["anthropic", "ollama", "cohere"])
def test_a_question_about_media_that_a_place_does_not_take_is_refused(dialect: str) -> None:
    """An answer without it would be wrong."""
    assert "audio/wav" in refused([HEARD], PLACES[dialect])


def test_media_of_an_earlier_question_are_left_out_by_name() -> None:
    """Another model answered them; the conversation goes on."""
    play = planned([HEARD, {"role": "assistant", "content": "A bell."}, QUESTION], PLACES["anthropic"])
    assert "a part of an earlier message" in left(play)
    assert "audio/wav" in left(play)


PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}


def function(**more: Any) -> dict[str, Any]:
    """A function with an optional parameter."""
    return {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS, **more}}


def strictness(place: Route, tool: dict[str, Any], front: str = "openai-chat") -> tuple[Any, str]:
    """What a definition says of ``strict`` upstream, and what is left out."""
    play = planned([QUESTION], place, front=front, tools=[tool], max_tokens=100)
    (tool,) = sent(play)["tools"] if "tools" in sent(play) else sent(play)["toolConfig"]["tools"]
    inner = tool.get("function", tool.get("toolSpec", tool))
    return inner.get("strict"), left(play)


@pytest.mark.parametrize(
    ("said", "dialect", "expected"),
    [
        ({}, "openai-responses", False),
        ({"strict": False}, "openai-responses", False),
        ({"strict": True}, "openai-responses", True),
        ({}, "anthropic", None),
        ({"strict": True}, "anthropic", True),
        ({"strict": True}, "bedrock", True),
        ({"strict": True}, "mistral", True),
    ],
)
def test_a_function_is_as_strict_as_its_client_said(said: dict[str, Any], dialect: str, expected: bool | None) -> None:
    """Responses take an omission for strict, which makes optional parameters required."""
    assert (expected, "") == strictness(PLACES[dialect], function(**said))


@pytest.mark.parametrize("dialect", ["ollama", "cohere"])
def test_strictness_that_a_dialect_has_no_name_for_is_named(dialect: str) -> None:
    """Calls are not held to the schema there."""
    strict, told = strictness(PLACES[dialect], function(strict=True))
    assert strict is None
    assert "tool weather: strict is not sent" in told


def test_members_of_a_definition_that_a_dialect_has_no_name_for_are_named() -> None:
    """A mark for the cache is for its provider alone."""
    tool = {
        "name": "weather",
        "input_schema": PARAMETERS,
        "defer_loading": True,
        "cache_control": {"type": "ephemeral"},
    }
    strict, told = strictness(PLACES["openai-chat"], {**tool, "strict": True}, "anthropic")
    assert strict is True
    assert "tool weather: defer_loading is not sent" in told
    assert "cache_control" not in told


@pytest.mark.parametrize("member", [{"partial": True}, {"prefix": True}, {"name": "Ada"}])
def test_what_a_message_says_of_itself_passes_in_its_dialect(member: dict[str, Any]) -> None:
    """The beginning of an answer is continued, and a speaker keeps a name."""
    messages = [{**QUESTION, "name": "bob"}, {"role": "assistant", "content": "It is", **member}]
    play = planned(messages, PLACES["openai-chat"])
    assert messages == sent(play)["messages"]
    assert "" == left(play)


@pytest.mark.parametrize("dialect", ELSEWHERE)
@pytest.mark.parametrize("member", ["partial", "prefix"])
def test_the_beginning_of_an_answer_is_continued_or_named(member: str, dialect: str) -> None:
    """Some dialects continue the last message, one if it says so, the others never."""
    play = planned([QUESTION, {"role": "assistant", "content": "It is", member: True}], PLACES[dialect])
    continues = dialect in ("anthropic", "bedrock", "ollama", "mistral")
    assert (member not in left(play)) == continues
    if dialect == "mistral":
        assert sent(play)["messages"][-1]["prefix"] is True


@pytest.mark.parametrize("dialect", ELSEWHERE)
def test_names_of_speakers_are_named_where_they_do_not_go(dialect: str) -> None:
    """No other dialect has them."""
    messages = [{**QUESTION, "name": "bob"}, {"role": "assistant", "content": "Cold.", "name": "Ada"}, QUESTION]
    play = planned(messages, PLACES[dialect])
    assert 2 == sum("name" in decision.reason for decision in told(play))
    assert "no name for it: name" in left(play)


CITED = {
    "type": "text",
    "text": "Snow fell.",
    "citations": [
        {
            "type": "web_search_result_location",
            "url": "https://x.example",
            "title": "X",
            "encrypted_index": "Eo8BCioIAhgB",
            "cited_text": "Snow",
        }
    ],
}
SEARCHED = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "snow"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "url": "https://x.example",
                "title": "X",
                "encrypted_content": "EqgfCioIARgB",
                "page_age": None,
            }
        ],
    },
    CITED,
]
ITEMS = [
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABc"},
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "snow", "queries": ["snow"]},
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Snow fell.", "annotations": []}],
    },
]


@pytest.mark.parametrize(
    ("front", "messages"),
    [
        ("anthropic", [QUESTION, {"role": "assistant", "content": SEARCHED}, QUESTION]),
        ("openai-responses", [QUESTION, *ITEMS, QUESTION]),
    ],
)
def test_items_of_a_conversation_that_began_elsewhere_pass_in_their_dialect(front: str, messages: list[Any]) -> None:
    """They are the client's, which names the model that is to read them; elsewhere they do not go."""
    play = planned(messages, PLACES[front], front=front, max_tokens=9) if front == "anthropic" else None
    play = play or planned(messages, PLACES[front], front=front)
    assert messages == sent(play)[MESSAGES.get(front, "messages")]
    assert "" == left(play)
    elsewhere = planned(messages, PLACES["openai-chat"], front=front)
    assert "EqgfCioIARgB" not in json.dumps(sent(elsewhere))
    assert "only its maker can read it" in left(elsewhere)


def test_an_image_of_an_earlier_answer_is_named_where_it_cannot_go() -> None:
    """The model does not see it, and whoever asks can read so."""
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    contents: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"text": "draw"}]},
        {"role": "model", "parts": [{"text": "here"}, image]},
        {"role": "user", "parts": [{"text": "more"}]},
    ]
    play = planned(contents, PLACES["openai-chat"], front="gemini")
    assert "aGk=" not in json.dumps(sent(play))
    assert "image/png of an earlier answer: " in left(play)


OWN = st.dictionaries(
    st.sampled_from(["annotations", "cache_control", "citations", "partMetadata", "phase", "x_unknown"]),
    st.none()
    | st.integers()
    | st.text(max_size=3)
    | st.lists(st.fixed_dictionaries({"url": st.just("u")}), max_size=2),
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="<>\x00"), min_size=1, max_size=8).map(
    lambda text: f"a{text}a"
)


def object_of(**members: Any) -> st.SearchStrategy[dict[str, Any]]:
    """An object with these members (values or strategies), and others of the client's behind them."""
    fields = {key: value if isinstance(value, st.SearchStrategy) else st.just(value) for key, value in members.items()}
    return st.tuples(st.fixed_dictionaries(fields), OWN).map(lambda both: {**both[1], **both[0]})


CHAT_TEXT = object_of(type="text", text=TEXTS)
CHAT_CALL = object_of(id="call_1", type="function", function=object_of(name="f", arguments='{"a": 1}'))
RESPONSES_TEXT = object_of(type="output_text", text=TEXTS)
GEMINI_TEXT = object_of(text=TEXTS)
SPOKEN: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "openai-chat": object_of(role="assistant", content=TEXTS | st.lists(CHAT_TEXT, min_size=1, max_size=2))
    | object_of(role="assistant", content=TEXTS, tool_calls=st.lists(CHAT_CALL, min_size=1, max_size=1)),
    "openai-responses": object_of(
        type="message", role="assistant", content=st.lists(RESPONSES_TEXT, min_size=1, max_size=2)
    )
    | object_of(type="function_call", call_id="call_1", name="f", arguments="{}", namespace="crm")
    | object_of(type="shell_call", call_id="call_1", action=object_of(commands=st.just(["ls"])), id="sh_1"),
    "anthropic": object_of(
        role="assistant",
        content=st.lists(
            object_of(type="text", text=TEXTS)
            | object_of(type="server_tool_use", id="srvtoolu_1", name="web_search", input=st.just({"query": "q"})),
            min_size=1,
            max_size=1,
        ),
    ),
    "gemini": object_of(
        role="model",
        parts=st.lists(
            GEMINI_TEXT | object_of(executableCode=object_of(language="PYTHON", code="1")), min_size=1, max_size=1
        ),
    ),
}


def with_values(value: Any) -> Any:
    """A document without the members that have no value, which say nothing and may be left out."""
    if isinstance(value, dict):
        return {key: with_values(held) for key, held in value.items() if held is not None}
    return [with_values(each) for each in value] if isinstance(value, list) else value


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(SPOKEN)))
def test_an_answer_goes_as_its_client_sent_it(data: st.DataObject, front: str) -> None:
    """Every member, documented or not, at every level, where client and place speak one dialect."""
    asked: dict[str, Any] = {"role": "user", "parts": [{"text": "q"}]} if front == "gemini" else QUESTION
    spoken = data.draw(SPOKEN[front])
    params: dict[str, Any] = {"max_tokens": 9} if front == "anthropic" else {}
    play = planned([asked, spoken, asked], PLACES[front], front=front, **params)
    expected = json.loads(json.dumps([asked, spoken, asked]))
    assert with_values(expected) == with_values(sent(play)[MESSAGES.get(front, "messages")])
    assert "" == left(play)
