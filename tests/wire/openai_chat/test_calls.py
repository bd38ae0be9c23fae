"""Tool calls: in fragments, in parallel, without index or id, and inside Kimi's reasoning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.feeding import body, calls, chunk, feed, read, reasoning, sse, stream, thoughts
from thinkback.model.blocks import Carrier, ToolCall
from thinkback.model.deltas import ReasoningDelta, ToolCallDelta
from thinkback.wire.openai_chat.kimi_calls import BEGIN, END, parse_section


def call(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: str | None = None, **more: Any
) -> dict[str, Any]:
    """A fragment of a call; what is ``None`` is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    known = {"index": index, "id": id, "function": function or None}
    return {**{key: value for key, value in known.items() if value is not None}, **more}


STREAMED = [
    (
        "fragments",
        [[call(0, "c1", "f", "")], [call(0, arguments='{"a"')], [call(0, arguments=":1}")]],
        [("c1", "f", '{"a":1}')],
    ),
    (
        "parallel",
        [[call(0, "c1", "f", "{"), call(1, "c2", "g", "[")], [call(1, arguments="]")], [call(0, arguments="}")]],
        [("c1", "f", "{}"), ("c2", "g", "[]")],
    ),
    (
        "id and name in every fragment",
        [[call(0, "c1", "f", "{")], [call(0, "c1", "f", "}")], [call(0, "c1", "f", "")]],
        [("c1", "f", "{}")],
    ),
    ("the id comes late", [[call(0, None, "f", "{")], [call(0, "c1", None, "}")]], [("c1", "f", "{}")]),
    (
        "the name comes in pieces",
        [[call(0, "c1", "get_", "")], [call(0, None, "day", "{}")]],
        [("c1", "get_day", "{}")],
    ),
    (
        "one index for all",
        [[call(0, "c1", "f", "{}")], [call(0, "c2", "g", "{")], [call(0, None, None, "}")]],
        [("c1", "f", "{}"), ("c2", "g", "{}")],
    ),
    ("one index, no ids", [[call(0, "", "f", "{}"), call(0, "", "g", "{}")]], [("", "f", "{}"), ("", "g", "{}")]),
    (
        "one index, no ids, one name",
        [[call(0, "", "f", '{"a":1}'), call(0, "", "f", '{"a":2}')]],
        [("", "f", '{"a":1}'), ("", "f", '{"a":2}')],
    ),
    (
        "one name over and over",
        [[call(0, "", "f", '{"a":')], [call(0, "", "f", "{}")], [call(0, "", "f", "}")]],
        [("", "f", '{"a":{}}')],
    ),
    ("a bracket that closes nothing", [[call(0, "", "f", "}")], [call(0, "", "f", "{")]], [("", "f", "}{")]),
    (
        "no index",
        [
            [call(None, "c1", "f", "{")],
            [call(None, None, None, "}")],
            [call(None, "c2", "g", "[")],
            [call(None, "c1", None, " ")],
            [call(None, "c2", None, "]")],
        ],
        [("c1", "f", "{} "), ("c2", "g", "[]")],
    ),
    (
        "no index, no ids",
        [[call(None, None, "f", "{}")], [call(None, None, "g", "{}")]],
        [("", "f", "{}"), ("", "g", "{}")],
    ),
    ("null for everything", [[{"index": None, "id": None, "type": None, "function": None}]], [("", "", "")]),
    (
        "one id, two indexes",
        [[call(0, "c1", "f", "{}")], [call(1, "c1", "g", "{}")]],
        [("c1", "f", "{}"), ("c1", "g", "{}")],
    ),
    (
        "arguments that are an object",
        [[{"index": 0, "id": "c1", "function": {"name": "f", "arguments": {"b": 1, "a": 2}}}]],
        [("c1", "f", '{"b":1,"a":2}')],
    ),
    ("no argument at all", [[call(0, "c1", "f")]], [("c1", "f", "")]),
    ("shapes that are none", [["x", 1, {"function": "f"}]], [("", "", "")]),
]


@pytest.mark.parametrize(("name", "deltas", "expected"), STREAMED, ids=[case[0] for case in STREAMED])
def test_streamed_calls_are_put_together(
    name: str, deltas: list[list[Any]], expected: list[tuple[str, str, str]]
) -> None:
    """Fragments find their call, and arguments are the source text as it came; known and odd chunks alike."""
    assert expected == calls(read(stream(*({"tool_calls": delta} for delta in deltas))))
    assert expected == calls(read(stream(*({"tool_calls": delta, "odd": 1} for delta in deltas))))


def test_calls_of_a_whole_message_are_each_their_own() -> None:
    """Calls without id or index, and calls that say the same, stay apart."""
    same = {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}}

    assert [("", "f", "{}")] * 2 == calls(read(body({"tool_calls": [same, same]})))


def test_a_call_is_shown_in_pieces_with_its_name_once() -> None:
    """Deltas bring id and name once and the arguments as they come; a piece that says nothing is not shown."""
    deltas, _ = feed([stream(*({"tool_calls": [call(0, "c1", "f", text)]} for text in ("{", "", "}")))])

    assert [ToolCallDelta(0, "c1", "f", "{", "r1"), ToolCallDelta(0, arguments="}", response="r1")] == deltas


def test_what_a_call_holds_beside_the_usual_is_kept_verbatim() -> None:
    """Unknown keys of the call and of its function, in any fragment, are in its object."""
    google = {"google": {"thought_signature": "AAA"}}
    result = read(
        stream(
            {"tool_calls": [call(0, "c1", "f", "{", type="function", extra_content=google)]},
            {"tool_calls": [{"index": 0, "function": {"arguments": "}", "strict": True}}]},
        )
    )
    wire = (
        '{"id":"c1","type":"function","function":{"name":"f","arguments":"{}","strict":true},'
        '"extra_content":{"google":{"thought_signature":"AAA"}}}'
    )

    assert (ToolCall("c1", "f", "{}", wire=wire, carriers=(Carrier("thought_signature", "AAA"),)),) == result.blocks


def test_another_type_of_call_is_kept_with_its_type() -> None:
    """A custom call gives its name and input; a type that is not known keeps its function."""
    custom = read(
        stream(
            {"tool_calls": [call(0, "c1", type="custom", custom={"name": "sql", "input": "SELECT"})]},
            {"tool_calls": [call(0, custom={"input": " 1"})]},
        )
    )
    other = read(
        stream({"tool_calls": [call(0, "c1", "f", "{}", type="mcp")]}, {"tool_calls": [call(0, arguments=" ")]})
    )

    assert [("c1", "sql", "SELECT 1")] == calls(custom)
    assert {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}} == wire(custom)
    assert {"id": "c1", "type": "mcp", "function": {"name": "f", "arguments": "{} "}} == wire(other)


def wire(result: Any) -> Any:
    """The object of the only block."""
    return json.loads(result.blocks[0].wire)


def section(*found: tuple[str, str]) -> str:
    """A Kimi section with these calls."""
    text = "".join(
        f"<|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>" for id, arguments in found
    )
    return f"{BEGIN}{text}{END}"


ONE = section(("functions.day:0", "{}"))


def test_calls_inside_the_reasoning_become_calls() -> None:
    """The section is cut out of what is shown, its calls are real, and the field can be given back whole."""
    text = f"a {section(('functions.day:0', '{}'), (' functions.ns.week:1 ', ' {} '))} b"
    for raw in (
        stream({"reasoning_content": text}),
        stream(*({"reasoning_content": c} for c in text)),
        body({"reasoning_content": text}),
    ):
        result = read(raw, leaked="kimi")

        assert [("functions.day:0", "day", "{}"), ("functions.ns.week:1", "ns.week", "{}")] == calls(result)
        assert "a  b" == reasoning(result.blocks)
        assert text == "".join(block.thought + block.closing for block in thoughts(result))
        assert ["reasoning_content"] * 2 == [b.source_field for b in result.blocks if isinstance(b, ToolCall)]


KIMI = [
    ("only calls", ONE, "", 1),
    (
        "white space",
        f" {BEGIN} <|tool_call_begin|> f:0 <|tool_call_argument_begin|> {{}} <|tool_call_end|> {END} ",
        "  ",
        1,
    ),
    ("two sections", f"{ONE}a{section(('functions.week:1', '{}'))}", "a", 2),
    ("no end mark", ONE.removesuffix(END), "", 1),
    ("cut in the arguments", ONE[:-50], ONE[:-50], 0),
    ("empty", BEGIN + END, BEGIN + END, 0),
    ("prose inside", f"{BEGIN}hm{END}", f"{BEGIN}hm{END}", 0),
    ("prose between calls", ONE.replace(END, f"hm{END}"), ONE.replace(END, f"hm{END}"), 0),
    ("no name", ONE.replace("functions.day:0", "functions.:0"), ONE.replace("functions.day:0", "functions.:0"), 0),
    ("a space in the id", ONE.replace("day:0", "d ay:0"), ONE.replace("day:0", "d ay:0"), 0),
    ("half a mark", "a<|tool_calls_sec", "a<|tool_calls_sec", 0),
    ("another bracket", "a < b <|tool", "a < b <|tool", 0),
]


@pytest.mark.parametrize(("name", "text", "shown", "count"), KIMI, ids=[case[0] for case in KIMI])
def test_a_malformed_section_stays_text(name: str, text: str, shown: str, count: int) -> None:
    """What is no section, or not a whole one, is reasoning like any other."""
    result = read(stream(*({"reasoning": piece} for piece in text)), leaked="kimi")

    assert shown == reasoning(result.blocks)
    assert count == len(calls(result))
    assert text == "".join(block.thought + block.closing for block in thoughts(result))


PROPER = call(0, "functions.day:0", "day", "{}", extra=1)
QUOTED: list[tuple[str, list[dict[str, Any]], str | None]] = [
    ("an answer follows", [{"reasoning": f"a{ONE}"}, {"reasoning": "b"}, {"content": "c"}], "stop"),
    ("an answer comes first", [{"content": "c"}, {"reasoning": f"a{ONE}b"}], "stop"),
    ("a list of parts", [{"reasoning": f"a{ONE}b"}, {"content": [{"type": "text", "text": "c"}]}], "stop"),
    ("a refusal", [{"reasoning": f"a{ONE}b"}, {"refusal": "c"}], "stop"),
    ("a refusal and more", [{"reasoning": f"a{ONE}b"}, {"refusal": "c", "odd": 1}], "stop"),
    ("the output limit", [{"reasoning": f"a{ONE}b"}], "length"),
    ("a filter", [{"reasoning": f"a{ONE}b"}], "content_filter"),
    ("no end", [{"reasoning": f"a{ONE}b"}], None),
]


@pytest.mark.parametrize(("name", "deltas", "finish"), QUOTED, ids=[case[0] for case in QUOTED])
def test_markers_beside_an_answer_are_a_quotation(name: str, deltas: list[dict[str, Any]], finish: str | None) -> None:
    """Where there is an answer, or no end that fits a call, all of it is reasoning, in order."""
    result = read(stream(*deltas, finish=finish), leaked="kimi")

    assert (f"a{ONE}b", []) == (reasoning(result.blocks), calls(result))


@pytest.mark.parametrize("blank", ["", " \n"])
def test_white_space_is_no_answer(blank: str) -> None:
    """A content of nothing beside the markers makes them no quotation."""
    assert 1 == len(calls(read(stream({"reasoning": ONE}, {"content": blank}), leaked="kimi")))


def test_markers_are_reasoning_where_nobody_says_that_they_leak() -> None:
    """Without the option nothing is held back, and nothing is a call."""
    deltas, result = feed([sse(chunk({"reasoning": f"a{ONE}"})), sse(chunk({}, "stop"))])

    assert [f"a{ONE}"] == [delta.text for delta in deltas if isinstance(delta, ReasoningDelta)]
    assert (f"a{ONE}", []) == (reasoning(result.blocks), calls(result))


@pytest.mark.parametrize(
    "deltas", [[{"reasoning": ONE}, {"tool_calls": [PROPER]}], [{"tool_calls": [PROPER]}, {"reasoning": ONE}]]
)
def test_a_call_that_the_server_parsed_as_well_is_one_call(deltas: list[dict[str, Any]]) -> None:
    """What the server says is a call is one; the markers are reasoning, whichever comes first."""
    for result in (
        read(stream(*deltas, finish="tool_calls"), leaked="kimi"),
        read(stream(*({**delta, "odd": 1} for delta in deltas)), leaked="kimi"),
    ):
        assert [("functions.day:0", "day", "{}", "tool_calls")] == [
            (b.id, b.name, b.arguments, b.source_field) for b in result.blocks if isinstance(b, ToolCall)
        ]
        assert ONE == reasoning(result.blocks)


def test_a_call_that_leaked_twice_is_one_call() -> None:
    """The same id in two sections."""
    assert 1 == len(calls(read(stream({"reasoning": ONE * 2}), leaked="kimi")))


def test_ids_without_a_number_name_their_function() -> None:
    """An id may lack the counter or the prefix."""
    assert [("day", "day"), ("functions.day", "day"), ("a:b:1", "a:b")] == [
        (found.id, found.name)
        for id in ("day", "functions.day", "a:b:1")
        for found in parse_section(section((id, "{}")))
    ]


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"google": {"thought_signature": "sig"}}, ["sig"]),
        ({"google": {"thought_signature": ""}}, []),
        ({"google": {"thought_signature": 1}}, []),
        ({"google": "odd"}, []),
        ("odd", []),
    ],
)
def test_the_signature_of_a_call_is_a_carrier(extra: object, expected: list[str]) -> None:
    """Gemini signs calls inside extra_content; the value is a carrier, and the call's own object keeps it."""
    (found,) = read(stream({"tool_calls": [call(0, "c1", "f", "{}", extra_content=extra)]})).blocks

    assert isinstance(found, ToolCall)
    assert expected == [carrier.value for carrier in found.carriers]
    assert extra == json.loads(found.wire)["extra_content"]
