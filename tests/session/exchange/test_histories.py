"""Histories of other programs in a log: found, stored once, grown, never written to, and nothing of them in force."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

import thinkback
from tests.formats.samples import (
    CLAUDE,
    CODEX,
    HERE,
    OPENCODE,
    SAMPLES,
    SPENT,
    answered,
    asked,
    claude,
    codex,
    gave,
    item,
    jsonl,
    minted,
    only,
    used,
    write_database,
)
from thinkback.errors import NotFoundError
from thinkback.formats.history import key_of, placed
from thinkback.log.seal import head_of, seal
from thinkback.model.commits import Draft, Head, Step
from thinkback.session.exchange import histories
from thinkback.session.exchange.histories import Gap, Took, Wanted, run, vouched
from thinkback.session.history.children import spawn
from thinkback.session.store import SessionStore
from thinkback.settings.registry import IMPORTED


@pytest.fixture
def store() -> Iterator[SessionStore]:
    """An empty log."""
    with thinkback.open(":memory:") as opened:
        yield opened


def put(place: Path, name: str, data: bytes) -> Path:
    """A file below a folder."""
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def take(store: SessionStore, program: str, place: Path, **wanted: object) -> tuple[list[Took], list[Gap]]:
    """An import of what is below a folder."""
    return run(store.log, Wanted(program, str(place), **wanted))  # type: ignore[arg-type]


def heads(store: SessionStore, name: str) -> dict[str, list[str]]:
    """What is on each branch of a session, as kinds and first words."""
    info = store.find(name)
    return {
        branch.name: [f"{commit.kind} {getattr(commit.value, 'text', '')}".strip() for commit in line]
        for branch in store.log.refs.list(info.id)
        for line in [store.log.read(info.id, branch=branch.name)]
    }


def test_a_second_import_adds_what_is_new_and_nothing_else(store: SessionStore, tmp_path: Path) -> None:
    """The session has the source's times, program, project and ids; a tail is appended where it belongs."""
    file = put(tmp_path, "projects/p/s1.jsonl", SAMPLES["claude-code"])
    before = file.stat()
    (took,), gaps = take(store, "claude-code", tmp_path)
    assert (True, 12, "proj", "Find the file") == (took.made, took.commits, took.project, took.title)
    assert ["queue-operation", "attachment"] == [gap.left.what for gap in gaps]
    summary = store.log.summaries()[store.find(took.name).id]
    assert ("claude-code", "proj", ("claude-code:s1", f"file:{file}")) == (
        summary.about.program,
        summary.about.project,
        summary.about.sources,
    )
    assert ("Which file?", ("claude-opus-5-5",), 1) == (summary.tally.title, summary.tally.models, summary.tally.turns)
    assert (before.st_mtime_ns, before.st_atime_ns >= 0) == (file.stat().st_mtime_ns, True)
    (again,), _ = take(store, "claude-code", tmp_path)
    assert (False, 0) == (again.made, again.commits)
    file.write_bytes(file.read_bytes() + jsonl(claude("u2", "a4", "user", "And then?")))
    (grown,), _ = take(store, "claude-code", tmp_path)
    assert (1, took.name) == (grown.commits, grown.name)
    assert ["user And then?"] == heads(store, took.name)["main"][12:]
    assert [] == store.fsck()


def test_a_response_that_was_not_whole_is_replaced(store: SessionStore, tmp_path: Path) -> None:
    """Its first lines were read while the program wrote; the branch goes on from the whole one."""
    put(tmp_path, "s1.jsonl", jsonl(*CLAUDE[:5], CLAUDE[6]))
    (first,), _ = take(store, "claude-code", tmp_path)
    put(tmp_path, "s1.jsonl", SAMPLES["claude-code"])
    take(store, "claude-code", tmp_path)
    (line,) = heads(store, first.name).values()
    assert (12, 2) == (len(line), line.count("tool_call"))


def test_who_went_on_here_keeps_their_line(store: SessionStore, tmp_path: Path) -> None:
    """What the source said since goes to a branch of its own."""
    put(tmp_path, "s1.jsonl", SAMPLES["claude-code"])
    (first,), _ = take(store, "claude-code", tmp_path)
    store.session(first.name).commit("Something of mine.")
    put(tmp_path, "s1.jsonl", jsonl(*CLAUDE, claude("u2", "a4", "user", "And then?")))
    take(store, "claude-code", tmp_path)
    lines = heads(store, first.name)
    assert ("user Something of mine.", "user And then?") == (lines["main"][-1], lines["main-2"][-1])
    assert "main" == store.find(first.name).branch


def test_branches_of_the_source_are_branches(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that it stands at is the current one, also when it changes later. Too many of them are told."""
    again = claude("u2", "u1", "user", "Or which folder?")
    put(tmp_path, "s1.jsonl", jsonl(*CLAUDE, again))
    (took,), _ = take(store, "claude-code", tmp_path)
    assert (2, 13) == (took.branches, took.commits)
    assert "user Or which folder?" == heads(store, took.name)["main"][-1]
    monkeypatch.setattr(histories, "MAX_BRANCHES", 1)
    assert (1, 1) == ((cut := take(store, "claude-code", tmp_path, dry_run=True)[0][0]).branches, cut.cut)
    monkeypatch.undo()
    put(tmp_path, "s1.jsonl", jsonl(*CLAUDE, again, claude("u3", "a4", "user", "Back to it.")))
    take(store, "claude-code", tmp_path)
    assert "user Back to it." == heads(store, took.name)[store.find(took.name).branch][-1]
    assert 2 == len(heads(store, took.name))


def test_sub_agents_are_child_sessions(store: SessionStore, tmp_path: Path) -> None:
    """Those whose parent is there."""
    child = claude("k1", None, "user", "Look it up", isSidechain=True, agentId="../k")
    put(tmp_path, "projects/p/s1/subagents/agent-k.jsonl", jsonl(child))
    put(tmp_path, "projects/p/s1.jsonl", SAMPLES["claude-code"])
    parent, task = (store.find(took.name) for took in take(store, "claude-code", tmp_path)[0])
    assert (parent.id, "task: Look it up", True) == (task.parent, task.purpose, task.is_task)


def test_nothing_of_it_is_in_force_and_nothing_opaque_is_sent(store: SessionStore, tmp_path: Path) -> None:
    """A request says what can be read; settings are none but the mark, and an origin comes of a person's word."""
    put(tmp_path, "s1.jsonl", SAMPLES["claude-code"])
    (took,), _ = take(store, "claude-code", tmp_path)
    assert {"session.imported": "true"} == store.find(took.name).settings
    place = {"endpoint": "anthropic", "model": "claude-opus-5-5", "api_key": "k"}
    session = store.session(took.name, **place)  # type: ignore[arg-type]
    body = b"".join(session.wire.plan("Go on.").body)
    assert (True, False) == (b"notes.txt" in body, b"c2lnbmF0dXJl" in body)
    assert b"c2lnbmF0dXJl" in store.log.read(store.find(took.name).id)[2].payload
    with thinkback.open(":memory:") as other:
        (mine,), _ = take(other, "claude-code", tmp_path, vouched=vouched(other, "anthropic"))
        assert b"c2lnbmF0dXJl" in b"".join(other.session(mine.name, **place).wire.plan("Go on.").body)  # type: ignore[arg-type]
        elsewhere = other.session(mine.name, **place, base_url="https://a.example")  # type: ignore[arg-type]
        assert b"c2lnbmF0dXJl" not in b"".join(elsewhere.wire.plan("Go on.").body)


def test_what_was_vouched_for_first_holds(store: SessionStore, tmp_path: Path) -> None:
    """Again without the word, or with it too late, adds nothing twice."""
    put(tmp_path, "s1.jsonl", SAMPLES["claude-code"])
    word = vouched(store, "anthropic")
    take(store, "claude-code", tmp_path, vouched=word)
    more = jsonl(
        *CLAUDE, claude("u2", "a4", "user", "And then?"), claude("a5", "u2", "assistant", "Yes.", **minted("m3"))
    )
    put(tmp_path, "s1.jsonl", more)
    (took,), _ = take(store, "claude-code", tmp_path)
    assert (5, ["main"]) == (took.commits, [*heads(store, took.name)])
    with thinkback.open(":memory:") as other:
        take(other, "claude-code", tmp_path)
        (late,), _ = take(other, "claude-code", tmp_path, vouched=word)
        assert (0, True) == (late.commits, "without --same-account" in late.skipped)


def test_a_checkpoint_of_the_source_holds_here(store: SessionStore, tmp_path: Path) -> None:
    """What it stands for is not said again."""
    put(
        tmp_path,
        "rollout-1.jsonl",
        jsonl(*CODEX, codex("compacted", message="So far."), asked("Next?"), answered("Yes.")),
    )
    (took,), _ = take(store, "codex", tmp_path)
    said = store.session(took.name).compile().to_text()
    assert (True, True, False) == ("So far." in said, "Next?" in said, "Which file?" in said)


def test_what_a_program_notes_in_an_open_turn_begins_no_other(store: SessionStore, tmp_path: Path) -> None:
    """It stands there as a system message does; an earlier import, in which it did not, is replaced."""
    note = claude("n1", "r2", "user", "Note", isMeta=True)
    put(tmp_path, "s1.jsonl", jsonl(*CLAUDE[:8], note, {**CLAUDE[8], "parentUuid": "n1"}))
    (took,), _ = take(store, "claude-code", tmp_path)
    line = store.commits(took.name)
    at = next(commit.seq for commit in line if commit.kind == "content")
    assert "system" == line[at].value.role  # type: ignore[union-attr]
    earlier = msgspec.structs.replace(line[at].value, role="user")
    info = store.find(took.name)
    store.log.refs.move(info.id, "main", head_of(line), head_of(line[:at]))
    store.log.care.gc(2**62)
    drafts = (Draft("content", earlier), *(Draft(c.kind, c.value, c.response, c.index) for c in line[at + 1 :]))
    commits = seal(Step("", drafts, line[at].time), head_of(line[:at]))
    store.log.append(info.id, "earlier", commits, head_of(line[:at]))
    take(store, "claude-code", tmp_path)
    assert ([*map(str, line)], ["main"]) == ([*map(str, store.commits(took.name))], [*heads(store, took.name)])
    assert [] == store.fsck()


def test_what_was_erased_stays_erased(store: SessionStore, tmp_path: Path) -> None:
    """A word that was taken out is not taken in again, and that is told."""
    put(tmp_path, "s1.jsonl", SAMPLES["claude-code"])
    (took,), _ = take(store, "claude-code", tmp_path)
    question = store.log.read(store.find(took.name).id)[0]
    store.care.redact(question.hash, "file")
    (again,), _ = take(store, "claude-code", tmp_path)
    assert (0, 1) == (again.commits, again.erased)


def test_what_was_deleted_is_not_taken_in_again(store: SessionStore, tmp_path: Path) -> None:
    """A keyed hash of the source is remembered, also when everything is purged, until a person deletes that memory."""
    put(tmp_path, "s1.jsonl", SAMPLES["claude-code"])
    put(tmp_path, "s2.jsonl", SAMPLES["claude-code"].replace(b'"s1"', b'"s2"'))
    (took, other), _ = take(store, "claude-code", tmp_path)
    assert (str(tmp_path / "s1.jsonl"),) == store.care.delete_session(took.name).files
    assert [other.name] == [info.name for info in store.sessions()]
    moved = (tmp_path / "s2.jsonl").rename(tmp_path / "moved.jsonl")
    take(store, "claude-code", tmp_path)
    assert (str(moved),) == store.care.purge(before="2027-01-01", dry_run=True).files
    assert (str(moved),) == store.care.purge(tenant="default").files
    again, _ = take(store, "claude-code", tmp_path)
    assert ["it was erased here, and stays so"] * 2 == [each.skipped for each in again]
    assert [] == store.sessions()
    memory = store.find("erased-imports")
    key, *hashes = store.log.summaries()[memory.id].about.sources
    assert (32, 2, False) == (len(key), len(hashes), "s1" in "".join(hashes))
    store.care.delete_session(memory.name)
    assert [True, True] == [each.made for each in take(store, "claude-code", tmp_path)[0]]


def test_only_what_is_wanted(store: SessionStore, tmp_path: Path) -> None:
    """By project and time; trying it stores nothing. Links, folders and files of others are left alone."""
    put(tmp_path, "a.jsonl", SAMPLES["codex"])
    put(tmp_path, "b.jsonl", jsonl({"role": "user", "content": "Hi"}))
    put(tmp_path, "c.jsonl", jsonl(CODEX[0]))
    (tmp_path / "d.jsonl").symlink_to(tmp_path / "a.jsonl")
    (tmp_path / "e.jsonl").mkdir()
    tried, gaps = take(store, "codex", tmp_path, dry_run=True)
    assert ([13], []) == ([took.commits for took in tried], store.sessions())
    assert ["it is no history of codex", "it holds no session"] == [
        gap.left.what for gap in gaps if "it " in gap.left.what
    ]
    for project, count in (("proj", 1), ("/home/person/dev", 1), ("other", 0), ("/home/per", 0)):
        assert count == len(take(store, "codex", tmp_path, project=project, dry_run=True)[0])
    assert [] == take(store, "codex", tmp_path, since=1795313518000000)[0]
    assert [] == take(store, "codex", tmp_path / "a.jsonl", since=2**60)[0]
    with pytest.raises(NotFoundError, match="there are no histories of codex"):
        take(store, "codex", tmp_path / "gone")


def test_what_other_programs_used_counts_once(store: SessionStore, tmp_path: Path) -> None:
    """Also where a response was imported before it was whole; a copy counts nothing, and no budget is spent."""
    put(tmp_path, "c.jsonl", SAMPLES["codex"])
    file = put(tmp_path, "s.jsonl", jsonl(*CLAUDE[:5], CLAUDE[6]))
    (half,), _ = take(store, "claude-code", file)
    file.write_bytes(jsonl(*CLAUDE))
    (whole,), _ = take(store, "claude-code", file)
    take(store, "codex", tmp_path / "c.jsonl")
    found = store.usage()
    assert half.name == whole.name
    assert (28, 14) == (found.total.use.output, store.session(whole.name).usage.total().use.output)
    assert store.log.summaries()[store.find(whole.name).id].tally.tokens > 0
    assert 0 == store.session(whole.name).usage.budget().spent
    assert ["claude-code", "codex"] == sorted(found.by("program"))
    assert ["proj"] == [*found.by("project")]
    assert [] == [*found.by("day", program="pi")] == [*found.by("day", project="x")] == [*found.by("day", since=2**60)]
    copy = spawn(store.session(whole.name), "copy", inheritance="selective")
    assert (True, 0, []) == (any(c.kind == "response" for c in copy.log()), copy.usage.total().steps, store.fsck())


def test_a_response_that_its_program_copied_into_another_history_counts_once(
    store: SessionStore, tmp_path: Path
) -> None:
    """By what the source calls it: a fork of Codex has other times, and no ids of responses; a resumed session of
    Claude Code has its lines again. What the copy has of its own counts, and the sessions stay as they are.
    """
    later = "2026-11-23T09:00:00Z"
    fork = codex("session_meta", id="c2", forked_from_id="c1", timestamp=later, cwd=HERE)
    kept = [line for line in CODEX[1:] if line["type"] != "token_usage_record"]
    copied = [{**line, "timestamp": f"2026-11-23T09:00:00.{at:03}Z"} for at, line in enumerate(kept)]
    put(tmp_path, "codex/a.jsonl", SAMPLES["codex"])
    new = item("function_call", id="fc_2", name="exec", arguments="{}", call_id="call_1")
    more = codex("event_msg", type="token_count", info={"last_token_usage": {**SPENT, "input_tokens": 30}})
    put(tmp_path, "codex/b.jsonl", jsonl(fork, *copied, asked("And then?", "user.text"), new, more))
    resumed = [{**line, "sessionId": "s2"} for line in CLAUDE]
    ours: dict[str, Any] = {"sessionId": "s2", "timestamp": later}
    said = claude("u9", "a4", "user", "And then?", **ours)
    last = claude("a9", "u9", "assistant", [{"type": "text", "text": "That is all."}], **ours, **minted("m9"))
    put(tmp_path, "claude/a.jsonl", jsonl(*CLAUDE))
    put(tmp_path, "claude/b.jsonl", jsonl(*resumed, said, last))
    took = {
        program: take(store, program, tmp_path / program.partition("-")[0])[0] for program in ("codex", "claude-code")
    }
    assert [[True, True]] * 2 == [[each.made for each in found] for found in took.values()]
    counted = store.usage()
    assert {"codex": 3, "claude-code": 3} == {name: len(steps) for name, steps in counted.by("program").items()}
    assert [1, 1, 2, 2] == sorted(len(steps) for steps in counted.by("session").values())
    assert [2, 2, 3, 3] == sorted(
        store.session(each.name).usage.total().steps for found in took.values() for each in found
    )


def test_two_samples_of_one_prompt_count_both(store: SessionStore, tmp_path: Path) -> None:
    """Their calls have no ids in the source, and are named by their place: that is nothing by which a copy is known."""
    lines = []
    for path in ("a", "b"):
        function = {"name": "ls", "arguments": json.dumps({"path": path})}
        spent = {"prompt_tokens": 10, "completion_tokens": 5}
        said = {"role": "assistant", "content": "", "tool_calls": [{"function": function}], "usage": spent}
        lines.append({"model": "m", "messages": [{"role": "user", "content": "Which?"}, said]})
    put(tmp_path, "samples.jsonl", jsonl(*lines))
    assert 2 == len(take(store, "chat-jsonl", tmp_path)[0])
    assert (2, 10) == (store.usage().total.steps, store.usage().total.use.output)


def test_usage_of_an_earlier_version_stays_as_it_is(store: SessionStore, tmp_path: Path) -> None:
    """It does not name its program: a second import finds it, and what is added does not count either."""
    history = only("claude-code", jsonl(*CLAUDE))
    id, head = key_of("session", "claude-code", history.id), Head()
    store.log.create_session(id, "earlier", history.created, None, {IMPORTED: "true"})
    for entry in history.entries:
        drafts = tuple(placed(draft, "claude-code", counts=False) for draft in entry.drafts)
        commits = seal(Step("", drafts, entry.time), head)
        store.log.append(id, entry.id, commits, head)
        head = head_of(commits)
    assert 0 == store.usage().total.steps
    put(tmp_path, "s.jsonl", jsonl(*CLAUDE, claude("u2", "a4", "user", "And then?")))
    (took,), _ = take(store, "claude-code", tmp_path)
    assert ("earlier", 1, 0, []) == (took.name, took.commits, store.usage().total.steps, store.fsck())


def test_names_of_a_hostile_file_become_nothing_here(store: SessionStore, tmp_path: Path) -> None:
    """Ids with paths, control characters, a title that is a command; calls without results, results without calls."""
    evil = {"sessionId": "../../etc/passwd\0\ud800", "cwd": "/x\0\ud800/..", "timestamp": "-1"}
    lines = (
        {**claude("../u", None, "user", "Hi"), **evil},
        {**claude("a", "../u", "assistant", [used("t1")], **minted("m")), **evil},
        {**claude("r", "a", "user", [gave("t9")]), **evil},
        {"type": "summary", "summary": "../../rm -rf \x1b[2J"},
    )
    put(tmp_path, "s.jsonl", jsonl(*lines))
    (took,), _ = take(store, "claude-code", tmp_path)
    info = store.find(took.name)
    assert ("rm-rf-2j-" + info.id[:8], []) == (info.name, store.fsck())
    body = store.session(took.name, endpoint="openai", model="gpt-5.6", api_key="k").wire.plan("Go on.").body
    assert b"Go on." in b"".join(body)


def test_a_database_is_a_history_too(store: SessionStore, tmp_path: Path) -> None:
    """Its sessions are found below the program's folder; a damaged one is told, and the others are read."""
    path = tmp_path / "opencode" / "opencode.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE session (id, title, directory, time_created)")
        database.execute("CREATE TABLE message (id, session_id, time_created, data)")
        database.execute("CREATE TABLE part (id, session_id, message_id, time_created, data)")
        database.execute("INSERT INTO session VALUES ('o1', 'Find it', '/x/proj', 1795313517741)")
        database.execute("INSERT INTO message VALUES ('m1', 'o1', 1795313517741, '{\"role\":\"user\"}')")
        text = '{"type":"text","text":"Which file?"}'
        database.execute("INSERT INTO part VALUES ('p1', 'o1', 'm1', 1795313517741, ?)", (text,))
        database.commit()
    put(tmp_path, "opencode/old/opencode.db", b"SQLite format 3\0" + b"x" * 5000)
    (took,), (gap,) = take(store, "opencode", tmp_path)
    assert (1, "proj", True) == (took.commits, took.project, "cannot be read as a database" in gap.left.what)
    assert ["user Which file?"] == heads(store, took.name)["main"]
    assert ["opencode.db"] == [file.name for file in path.parent.iterdir() if file.is_file()]


def test_a_session_of_many_documents_is_the_one_that_its_program_put_into_a_database_later(
    store: SessionStore, tmp_path: Path
) -> None:
    """opencode's older storage: by the names of files, whatever they say; links, damaged files and those of nobody are
    left alone.
    """
    storage = tmp_path / "old" / "storage"

    def document(*place: str, data: dict[str, Any], **more: object) -> None:
        put(storage, f"{'/'.join(place)}.json", json.dumps({**data, **more}, indent=2).encode())

    rows: tuple[dict[str, Any], ...] = OPENCODE
    for row in rows:
        match row["table"]:
            case "session":
                said = {"title": row["title"], "directory": row["directory"], "time": {"created": row["time_created"]}}
                document("session", "global", row["id"], data={"id": "ses_../../x", **said})
            case "message":
                document("message", row["session_id"], row["id"], data=row["data"], sessionID="x", id="y")
            case "part":
                document("part", row["message_id"], row["id"], data=row["data"], messageID="x", sessionID="x", id="y")
    put(storage, "message/o1/m0.json", b'{"role": "user"')
    put(storage, "message/o9/m9.json", b'{"role": "user"}')
    put(storage, "part/m1/notes.txt", b"{}")
    (storage / "part" / "m1" / "p0.json").symlink_to(storage / "message" / "o9" / "m9.json")
    (storage / "part" / "m0").symlink_to(storage / "part" / "m2")
    (took,), gaps = take(store, "opencode", tmp_path / "old")
    assert ("o1", True, "proj", "Find it", {"a damaged file"}) == (
        *(took.source, took.made, took.project, took.title),
        {gap.left.what for gap in gaps if "file" in gap.left.what},
    )
    write_database(tmp_path / "opencode.db", SAMPLES["opencode"])
    (again,), _ = take(store, "opencode", tmp_path / "opencode.db")
    assert (took.name, 0, False, []) == (again.name, again.commits, again.made, store.fsck())


def test_a_session_that_is_in_a_file_twice_is_taken_once(store: SessionStore, tmp_path: Path) -> None:
    """The first: else each import would put the one in the place of the other."""
    first, again = json.loads(SAMPLES["claude-ai"])[0], {"uuid": "ca1", "chat_messages": []}
    again["chat_messages"] = first["chat_messages"][:1]
    both = put(tmp_path, "conversations.json", json.dumps([first, again]).encode())
    (took,), gaps = take(store, "claude-ai", both)
    assert ["a session that is there twice"] == [gap.left.what for gap in gaps]
    (later,), _ = take(store, "claude-ai", both)
    assert (True, 0) == (took.made, later.commits)


def test_an_archive_is_read_without_being_unpacked(store: SessionStore, tmp_path: Path) -> None:
    """Its conversations alone, whatever its files are called; what is no archive is told."""
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("../../conversations-000.json", SAMPLES["chatgpt"])
        archive.writestr("user.json", "{}")
    put(tmp_path, "broken.zip", b"PK\x03\x04broken")
    (took,), gaps = take(store, "chatgpt", tmp_path)
    assert (11, True) == (took.commits, any("no archive that can be read" in gap.left.what for gap in gaps))
    assert "user.json in the archive" in {gap.left.what for gap in gaps}
    assert ["broken.zip", "export.zip"] == sorted(file.name for file in tmp_path.iterdir())
    (alone,), _ = take(store, "chat-jsonl", put(tmp_path, "tune.jsonl", SAMPLES["chat-jsonl"]))
    assert alone.made
    with pytest.raises(NotFoundError, match="atif has no folder of its own"):
        run(store.log, Wanted("atif"))


def test_words_typed_while_a_tool_ran_are_in_the_next_request(store: SessionStore, tmp_path: Path) -> None:
    """Behind the results, as the model read them; a file that was named goes along, and it is one turn as before."""
    typed = {**claude("q1", "r2", "attachment", ""), "attachment": {"type": "queued_command", "prompt": "The newest."}}
    content = {"type": "text", "file": {"content": "alpha"}}
    named = {
        **claude("f1", "u1", "attachment", ""),
        "attachment": {"type": "file", "filename": "/x/a", "content": content},
    }
    lines = (*CLAUDE[:2], named, {**CLAUDE[3], "parentUuid": "f1"}, *CLAUDE[4:8], typed)
    put(tmp_path, "s1.jsonl", jsonl(*lines, {**CLAUDE[8], "parentUuid": "q1"}))
    (took,), gaps = take(store, "claude-code", tmp_path)
    assert (14, ["queue-operation"]) == (took.commits, [gap.left.what for gap in gaps])
    assert "Which file?" == store.log.summaries()[store.find(took.name).id].tally.title
    for place in ("anthropic", "openai", "deepseek"):
        model = {"anthropic": "claude-opus-5-5", "openai": "gpt-5.6", "deepseek": "deepseek-v4-pro"}[place]
        body = b"".join(store.session(took.name, endpoint=place, model=model, api_key="k").wire.plan("Go on.").body)
        order = [body.find(word) for word in (b"Which file?", b"alpha", b"of t2", b"The newest.", b"Go on.")]
        assert (True, order) == (-1 not in order, sorted(order)), place
