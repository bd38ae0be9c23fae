"""What is said of a run in fewer words: from the log alone, and for a model to read."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.compile.build import Talk, call, say, think
from tests.compile.test_laws import talks
from tests.log.test_compaction import compacted, mark, marks, wishes
from thinkback.errors import CompactionRefused
from thinkback.log.compaction import Wish, cut
from thinkback.log.digest import digest, missing, note, survivors, transcript
from thinkback.log.outline import Outline
from thinkback.model.blocks import Media, ToolCall
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Content,
    Draft,
    Erased,
    Message,
    Priority,
)


def words(talk: Talk, **fields: Any) -> str:
    """The digest of everything but the last turns (by default, of everything)."""
    outline = Outline(talk.commits)
    return digest(outline, cut(outline, Wish(**{"tail": 0, **fields})))


def read(talk: Talk, room: int = 100_000, **fields: Any) -> str:
    """The transcript of the same."""
    outline = Outline(talk.commits)
    return transcript(outline, cut(outline, Wish(**{"tail": 0, **fields})), room)


def sections(text: str) -> dict[str, list[str]]:
    """The lines of each section of a digest, without what names commits."""
    found = {}
    for section in text.split("\n\n")[1:]:
        title, *lines = section.split("\n")
        found[title.rstrip(":")] = [line.removeprefix("- ") for line in lines]
    return found


def tool(name: str, **arguments: str) -> ToolCall:
    """A call with arguments."""
    return ToolCall("c1", name, json.dumps(arguments))


def ref(talk: Talk, at: int) -> str:
    """How a summary names the commit at a position."""
    return f"[{talk.commits[at].hash[:8]}]"


def test_a_digest_says_what_it_is_about_and_what_was_done() -> None:
    """Objective, further wishes, answers, files, calls and what is open, each from the log alone."""
    talk = Talk().user("Fix the bug in parser.py, please.")
    talk.reply(think("secret plan"), tool("read", path="parser.py")).result("c1", "code")
    talk.reply(tool("shell", command="make test")).result("c1", "1 failed").reply(say("It is an off-by-one.")).end()
    talk.user("Do not touch the tests.")
    talk.reply(say("Done so far:\n- [x] fix\n- [ ] changelog\n* [ ] release notes")).end()
    told = words(talk)
    assert {
        "Objective": ["Fix the bug in parser.py, please."],
        "The user asked": [f"{ref(talk, 11)} Do not touch the tests."],
        "Answers": [
            f"{ref(talk, 9)} It is an off-by-one.",
            f"{ref(talk, 13)} Done so far: - [x] fix - [ ] changelog * [ ] release notes",
        ],
        "Files": ["parser.py"],
        "Calls": ['read({"path": "parser.py"})', "shell(make test)"],
        "Still open": ["changelog", "release notes"],
    } == sections(told)
    assert told.startswith("6 messages of 2 turns are left out here; the log has them.")
    assert "secret" not in told


def test_arguments_that_are_no_object_are_told_as_they_are() -> None:
    """Models write broken JSON, and lists; nothing is read out of those."""
    talk = Talk().user("a")
    for arguments in ('{"path": "a.py', '["b.py"]', '{"path": 5, "command": ""}'):
        talk.reply(ToolCall("c1", "look", arguments)).result()
    told = sections(words(talk.reply(say("b")).end()))
    assert "Files" not in told
    assert ['look({"path": "a.py)', 'look(["b.py"])', 'look({"path": 5, "command": ""})'] == told["Calls"]


def test_a_question_without_an_answer_is_still_open() -> None:
    """It is named as such."""
    talk = Talk().turn("a").user("And then?").end("failed")
    assert ["unanswered: And then?"] == sections(words(talk))["Still open"]
    assert ["unanswered: Only this."] == sections(words(Talk().user("Only this.")))["Still open"]


def test_nothing_of_a_response_that_broke_off_is_told() -> None:
    """No model was sent it either."""
    talk = Talk().user("a").reply(say("half an ans"), complete=False).end("failed").turn("b")
    assert "half" not in words(talk) + read(talk)


def test_skipped_and_erased_commits_and_reasoning_are_in_neither() -> None:
    """What nobody is to see is not in a summary; of what was erased in part the rest is."""
    talk = Talk().user("first").reply(think("plan"), say("forget me"), tool("skip", path="gone")).result().end()
    mark(mark(talk, 3, Priority.SKIP), 4, Priority.SKIP)
    talk.note("user", Erased("asked for", 1)).reply(say("ok")).end()
    talk.note("user", Erased("asked for", 1, '{"type":"message","text":"the rest"}')).reply(say("fine")).end()
    for told in (words(talk), read(talk)):
        assert [False] * 4 == [word in told for word in ("plan", "forget", "gone", "skip(")]
        assert "the rest" in told


def test_what_was_edited_is_told_as_it_is_now() -> None:
    """The last edit counts."""
    talk = Talk().turn("helo")
    talk.add(Draft("user", Message("hello"), edit=talk.commits[0].hash))
    assert ["hello"] == sections(words(talk))["Objective"]


def test_pictures_are_named() -> None:
    """What a message holds beside its text is said by its type."""
    talk = (
        Talk()
        .note("user", Message("See:", (Media("image/png", "AAAA"),)))
        .reply(say("Nice."), Media("audio/mp3"))
        .end()
    )
    assert ["See: [image/png]"] == sections(words(talk))["Objective"]


def test_only_the_first_message_of_all_is_the_objective() -> None:
    """The first one of a middle is a wish like others."""
    talk = Talk().turn("goal").turn("more").turn("last")
    told = sections(words(talk, strategy="middle_out", tail=1))
    assert "Objective" not in told
    assert [f"{ref(talk, 5)} more"] == told["The user asked"]


def test_long_texts_and_many_lines_are_cut() -> None:
    """A digest is a share of what it stands for; what is left out is counted, the newest stays."""
    talk = Talk()
    for number in range(60):
        talk.turn(f"question {number} " + "x" * 500, say(f"answer {number} " + "y" * 500))
    told = words(talk)
    asked = sections(told)["The user asked"]
    assert len(told) < 12_000
    assert asked[0].startswith("(")
    assert asked[0].endswith("more in the log)")
    assert "question 59" in asked[-1]
    assert asked[-1].endswith("…")
    assert 59 == int(asked[0].split()[0][1:]) + len(asked) - 1


def test_of_notes_those_with_the_highest_priority_stay() -> None:
    """Of equals the newest; in the order of the log all the same."""
    talk = Talk()
    for number in range(40):
        weight = 90 if number == 3 else 50
        talk.note("content", Content("fact", f"{number} " + "z" * 180, compression_priority=weight))
    talk.note("branch_summary", BranchSummary("all went well", purpose="trial"))
    talk.note("branch_summary", BranchSummary("nothing"))
    lines = sections(words(talk))["Notes"]
    assert lines[0].endswith("more in the log)")
    assert "fact: 3 " in lines[1]
    assert "fact: 39 " in lines[-3]
    assert [f"{ref(talk, 40)} trial: all went well", f"{ref(talk, 41)} another branch: nothing"] == lines[-2:]


def test_what_is_important_survives() -> None:
    """In a digest and in a note: named, with its text, and with all that must be retained of it."""
    talk = Talk().turn("The key is under the mat.").turn("x " * 1_000 + "the end").reply(think("idea"), say("ok")).end()
    mark(mark(mark(talk, 0, Priority.IMPORTANT), 5, Priority.IMPORTANT, "The  End"), 11, Priority.IMPORTANT)
    outline = Outline(talk.commits)
    found = cut(outline, Wish(tail=0))
    for told in (digest(outline, found), note(outline, found)):
        lines = sections(told)["Important"]
        assert f"{ref(talk, 0)} The key is under the mat." == lines[0]
        assert lines[1].startswith(f"{ref(talk, 5)} x x x")
        assert lines[1].endswith("… The  End")
        assert ref(talk, 11) == lines[2]
        assert [] == missing(told, survivors(outline, found))


def test_what_is_missing_is_named() -> None:
    """A text that must be retained, or else the reference; white space and case do not matter."""
    talk = Talk().turn("a").turn("b")
    mark(mark(talk, 0, Priority.IMPORTANT, "Blue Door", "No 9"), 5, Priority.IMPORTANT)
    outline = Outline(talk.commits)
    wanted = survivors(outline, cut(outline, Wish(tail=0)))
    assert ["Blue Door", "No 9", ref(talk, 5)] == missing("", wanted)
    assert ["No 9"] == missing(f"the blue\ndoor {ref(talk, 5)}", wanted)


def test_a_note_is_one_line() -> None:
    """Where nothing is important."""
    talk = Talk().turn("a")
    outline = Outline(talk.commits)
    assert 1 == len(note(outline, cut(outline, Wish(tail=0))).splitlines())


def test_a_transcript_says_who_said_what() -> None:
    """In order, each with its reference; calls and results are there, reasoning is not."""
    talk = Talk().user("Look!").reply(think("hm"), call()).result("c1", "42").reply(say("It is 42.")).end()
    assert [
        f"{ref(talk, 0)} user:\nLook!",
        f"{ref(talk, 3)} assistant calls:\nlook({{}})",
        f"{ref(talk, 4)} result:\n42",
        f"{ref(talk, 6)} assistant:\nIt is 42.",
    ] == read(talk).split("\n\n")


def test_a_transcript_fits_its_room() -> None:
    """Long entries are cut first; then those in the middle are left out, and counted."""
    talk = Talk().user("begin " + "a" * 50_000).reply(say("short")).end()
    assert len(read(talk, 20_000)) < 20_000
    assert "characters left out" in read(talk, 20_000)
    assert "short" in read(talk, 20_000)
    for number in range(100):
        talk.turn(f"{number} " + "b" * 190)
    told = read(talk, 5_000)
    assert len(told) < 5_400
    assert "entries left out ...]" in told
    assert told.startswith(ref(talk, 0))
    assert "re 99" in told


def test_a_trimmed_result_is_told_trimmed() -> None:
    """A transcript has what the model was sent last."""
    talk = Talk().user("a").reply(call()).result("c1", "r" * 9_000).reply(say("b")).end()
    compacted(talk, Wish("tool_results", tail=0))
    assert "7,000 characters left out" in read(talk)


def test_a_summary_that_was_written_stands_for_its_run() -> None:
    """What a person or a model wrote cannot be made again; another digest is made from the log once more."""
    talk = Talk().turn("goal").turn("a")
    compacted(talk, Wish("manual", tail=0), "They agreed.")
    talk.turn("b")
    told = sections(words(talk))
    assert (["They agreed."], [f"{ref(talk, 11)} b"]) == (told["Earlier summary"], told["The user asked"])
    assert "Objective" not in told
    other = Talk().turn("goal").turn("a")
    compacted(other, Wish(tail=0), "a digest")
    other.turn("b")
    assert ["goal"] == sections(words(other))["Objective"]
    assert [f"{ref(other, 5)} a", f"{ref(other, 11)} b"] == sections(words(other))["The user asked"]


def test_a_transcript_takes_any_summary_in_force_for_its_run() -> None:
    """Once, where its run stands; what it kept word for word is told word for word."""
    talk = Talk().turn("goal").turn("pin me").turn("a")
    mark(talk, 5, Priority.PINNED)
    compacted(talk, Wish(tail=0), "a digest")
    talk.note("annotation", Annotation(talk.commits[5].hash, Priority.NORMAL)).turn("b")
    lines = [line for line in read(talk).splitlines() if not line.startswith("[")]
    assert ["a digest", "", "pin me", "", "b", "", "re b"] == lines


@given(talks(), st.lists(marks, max_size=24), wishes, st.integers(0, 400))
def test_summaries_hold_what_must_survive_and_nothing_hidden(
    talk: Talk, said: list[Priority | None], wish: Wish, room: int
) -> None:
    """Whatever the history: no reasoning in any of them, nothing important lost in a digest or a note."""
    talk.user("the end").reply(think("HIDDEN THOUGHT"), say("bye")).end()
    for at, priority in enumerate(said[: len(talk.commits)]):
        if priority is not None:
            mark(talk, at, priority)
    outline = Outline(talk.commits)
    try:
        found = cut(outline, wish)
    except CompactionRefused:
        return
    wanted = survivors(outline, found)
    for told in (digest(outline, found), note(outline, found)):
        assert [] == missing(told, wanted)
        assert "HIDDEN" not in told
    assert "HIDDEN" not in transcript(outline, found, room)


def test_a_transcript_may_have_the_reasoning() -> None:
    """Readable reasoning, where it is to have it; nothing of what is skipped, hidden or empty."""
    talk = (
        Talk().turn("a", think("SEEN"), think("SKIPPED"), think("DOUBLE", is_hidden=True), think(" "), say("x")).end()
    )
    talk.user("b")
    talk.annotate(next(c.hash for c in talk.commits if getattr(c.value, "thought", "") == "SKIPPED"))
    outline = Outline(talk.commits)
    found = cut(outline, Wish(tail=0))
    told = transcript(outline, found, 10_000, rationale=True)
    assert "assistant thinks:\nSEEN" in told
    assert not [word for word in ("SKIPPED", "DOUBLE") if word in told]
    assert "SEEN" not in transcript(outline, found, 10_000)
