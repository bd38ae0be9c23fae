"""opencode's database: steps to responses, parts to blocks."""

from __future__ import annotations

from typing import Any

from tests.formats.samples import OPENCODE, STATE, TOKENS, drafts, jsonl, kinds, only, read, row
from thinkback.formats.history import Left, Source
from thinkback.formats.opencode import FORMAT
from thinkback.model import canonical
from thinkback.model.blocks import Carrier, Media, ThinkingBlock, ToolResult
from thinkback.model.commits import Compaction, Response, Usage


def test_a_step_is_a_response() -> None:
    """With its usage and the results of its calls; what a provider added to a thought is kept word for word."""
    history = only("opencode", jsonl(*OPENCODE))
    expected = ["user", "response", "reasoning", "tool_call", "provider_usage", "tool_result", "response", "assistant"]
    assert [*expected, "provider_usage", "turn_ended"] == kinds(history)
    (thought,), (given,) = drafts(history, "reasoning"), drafts(history, "tool_result")
    assert isinstance(thought.value, ThinkingBlock)
    carriers = (Carrier("encrypted", "gAAAA"), Carrier("item_id", "rs_1"))
    assert ("c2lnbmF0dXJl", "none", carriers) == (thought.value.signature, thought.value.kind, thought.value.carriers)
    assert '"reasoningEncryptedContent":"gAAAA"' in thought.value.wire
    assert ToolResult("t1", "notes.txt", "bash") == given.value
    used = drafts(history, "provider_usage")[0].value
    assert isinstance(used, Usage)
    assert (9, 7, 3, 4, 0) == (used.input, used.output, used.reasoning, used.cached, used.cache_write)
    assert ("Find it", "/home/person/dev/proj", 250_000) == (history.title, history.directory, history.cost)


def more(*parts: dict[str, Any], role: str = "assistant", **data: Any) -> bytes:
    """The sample with one more message."""
    added = (row("part", f"q{at}", "o1", "m3", **each) for at, each in enumerate(parts))
    return jsonl(*OPENCODE, row("message", "m3", "o1", role=role, time={"created": 1795313517999}, **data), *added)


def test_a_message_without_steps_and_one_that_failed() -> None:
    """The message's own counts are the response's; a call that has not ended has no result."""
    wait = {**STATE, "status": "running"}
    bad = {**STATE, "status": "error", "error": "no"}
    tool = {"type": "tool", "callID": "t2", "tool": "bash"}
    found = read("opencode", more({**tool, "state": wait}, {**tool, "state": bad}, tokens=TOKENS))
    assert ["response", "tool_call", "tool_call", "provider_usage", "tool_result"] == kinds(found.sessions[0])[-5:]
    for error, told in (({"name": "Aborted"}, "Aborted"), ({"data": {"message": "429"}}, "429"), ({"a": 1}, '{"a":1}')):
        header = drafts(only("opencode", more(error=error)), "response")[-1].value
        assert isinstance(header, Response)
        assert header.error is not None
        assert told == header.error.message


def test_a_summary_is_a_checkpoint() -> None:
    """It stands behind the response that wrote it."""
    history = only(
        "opencode", more({"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "So far."}, summary=True)
    )
    assert ["response", "reasoning", "assistant", "turn_ended", "compaction"] == kinds(history)[-5:]
    assert Compaction("model", "So far.", reason="opencode") == drafts(history, "compaction")[0].value


def test_what_else_a_person_and_a_model_send() -> None:
    """Files as media, or beside the message where only a path is known; what the program added stands beside it."""
    file = {"type": "file", "mime": "image/png", "filename": "a.png"}
    parts: tuple[dict[str, Any], ...] = (
        {"type": "text", "text": "Note", "synthetic": True},
        {**file, "url": "file:///a.png"},
        {"type": "odd"},
        {},
    )
    found = read("opencode", more({**file, "url": "data:image/png;base64,eA=="}, *parts, role="user"))
    assert ["user", "content", "content"] == kinds(found.sessions[0])[-3:]
    assert ["part step-start", "part odd", "part without a type"] == [left.what for left in reversed(found.left)][::-1]
    drawn = only(
        "opencode",
        more(
            {**file, "url": "u"},
            {"type": "reasoning", "metadata": {"g": {"redactedData": "r", "thoughtSignature": "t"}}},
        ),
    )
    assert Media("image/png", url="u", name="a.png") == drafts(drawn, "media")[0].value
    thought = drafts(drawn, "reasoning")[-1].value
    assert isinstance(thought, ThinkingBlock)
    assert ["redacted", "thought_signature"] == [carrier.kind for carrier in thought.carriers]


def test_what_is_left_out_is_named() -> None:
    """Messages of newer tables, without an id, of nobody; sub-agents name their session."""
    child = {**OPENCODE[0], "id": "o2", "parent_id": "o1", "title": "Look it up"}
    asked = (row("message", "m9", "o2", role="user"), row("part", "p9", "o2", "m9", type="text", text="Hi"))
    odd = (row("message", "", "o1", role="user"), row("message", "m8", "o1"), row("message", "m7", "o1", role="user"))
    found = read(
        "opencode", jsonl(*OPENCODE, child, *asked, *odd, {"table": "session_message"}, {"table": "part", "data": 1})
    )
    assert ("o1", "Look it up") == (found.sessions[1].parent, found.sessions[1].purpose)
    assert {
        Left("a message of a newer form", 1),
        Left("a message without an id of its own", 1),
        Left("message of nobody", 1),
        Left("part step-start", 1),
    } == {*found.left}
    odder = more({"type": ""}, {"type": "new"}, role="assistant")
    assert ["part without a type", "part new"] == [left.what for left in read("opencode", odder).left[1:]]


def test_a_file_goes_by_its_name_and_its_folder() -> None:
    """It is read as the database's rows are, whatever ids it says; a damaged one is named."""

    def file(id: str, within: str, **said: object) -> dict[str, object]:
        return {"id": id, "within": within, "data": canonical.source({**said, "id": "y", "sessionID": "x"})}

    tables: dict[str, list[dict[str, Any]]] = {
        "session": [file("o1", "global", title="Find it", parentID="o0", time={"created": 1795313517000})],
        "message": [file("m1", "o1", role="user"), {"id": "m2", "within": "o1", "data": "{"}],
        "part": [file("p1", "m1", type="text", text="Which file?", messageID="z")],
    }
    found = FORMAT.read(Source("o1.json", (), tables))
    (history,) = found.sessions
    assert ("o1", "o0", "Find it", 1795313517000000) == (history.id, history.parent, history.title, history.created)
    assert [("m1", "Which file?")] == [(entry.id, entry.drafts[0].value.text) for entry in history.entries]  # type: ignore[union-attr]
    assert ["a damaged file", "message of nobody"] == [left.what for left in found.left]
    assert [True, True, False] == [FORMAT.is_own(head) for head in (b'{\n  "id": "ses_1"', b"SQLite format 3\0", b"{}")]
