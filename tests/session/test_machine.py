"""Random lives of sessions on three stores side by side, compared with each other and with a naive model."""

from __future__ import annotations

import json
import re
import secrets
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import thinkback
from tests.effort import Effort
from tests.session import naive
from tests.session.naive import Item, Log, Merged, Place, Record, tokens
from tests.session.worlds import PLACE, Clock, Refused, World, compiled, erasure, looks, plain, sent
from tests.stores.postgres_server import Server
from thinkback.errors import ContextRefused, NotFoundError, ThinkbackError
from thinkback.log.merge import MergeResult
from thinkback.log.protocol import Removed
from thinkback.model.commits import Commit, Priority
from thinkback.session.history.children import collapse, neutral, spawn
from thinkback.session.session import Session

T = TypeVar("T")
Deed: TypeAlias = tuple[str, int]
VOCABULARY = ("apple", "pear", "plum")
TAGS = ("red", "green")
FOREVER = 10**12
SESSIONS, BRANCHES = 4, 4
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
INTERRUPTED = "This call was interrupted"

number = st.integers(0, 30)
words = st.lists(st.sampled_from(VOCABULARY), max_size=2)
tags = st.lists(st.sampled_from(TAGS), max_size=2, unique=True).map(tuple)


deeds = st.lists(
    st.tuples(
        st.sampled_from(["say", "ask", "edit", "edit", "restore", "skip", "pinned", "compact"]), st.integers(0, 4)
    ),
    max_size=3,
)


class Machine(RuleBasedStateMachine):
    """What is done to the sessions. Each rule says what the model expects of it."""

    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.exits = ExitStack()
        self.clock = Clock()
        self.exits.enter_context(patch("thinkback.drive.clock.time", self.clock))
        self.exits.enter_context(patch("thinkback.session.ids.secrets", self.clock))
        self.worlds = self.make_worlds()
        self.actions = 0
        self.texts = 0
        self.log = Log()
        self.copies: set[str] = set()
        self.here = ""

    def make_worlds(self) -> list[World]:
        """A log in memory, one in a file, and a tenant of its own on the server."""
        place = Path(self.exits.enter_context(tempfile.TemporaryDirectory()))
        tenant = secrets.token_hex(8)
        return [
            World(lambda: thinkback.open(":memory:"), lasts=False),
            World(lambda: thinkback.open(place / "log.db", durability="normal"), lasts=True),
            World(lambda: thinkback.open(self.server.url(), tenant=tenant, connections=2), lasts=True),
        ]

    def teardown(self) -> None:
        for world in self.worlds:
            world.store.close()
        self.exits.close()

    # -- doing -----------------------------------------------------------------------------------------------------

    def do(self, act: Callable[[World], T]) -> T | Refused:
        """What every store answers, which is the same; the model takes in what is new."""
        self.actions += 1
        answers: list[T | Refused] = []
        for world in self.worlds:
            self.clock.restart(self.actions)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that carriers are void
                try:
                    answers.append(act(world))
                except ThinkbackError as error:
                    answers.append(Refused(type(error).__name__, error.message, error.details))
        assert all(answer == answers[0] for answer in answers), answers
        return answers[0]

    def adopt(self, owner: str) -> dict[str, dict[str, str]]:
        """New commits, as they were stored by ``owner``; returns where the branches are."""
        log = self.worlds[0].store.log
        tips: dict[str, dict[str, str]] = {}
        for info in log.list_sessions():
            tips[info.id] = {branch.name: branch.head.hash for branch in log.refs.list(info.id)}
            for branch, hash in tips[info.id].items():
                if hash and hash not in self.log.records:
                    for commit in log.read(info.id, branch=branch):
                        self.log.records.setdefault(commit.hash, plain(commit, owner))
        return tips

    def grow(self, act: Callable[[Session], T], expect: Callable[[list[Item]], list[Item]]) -> T | Refused:
        """Something that may add to the current branch and changes nothing else."""
        old = self.tip
        before = naive.items(self.line)
        answer = self.do(lambda world: act(world.session(self.here)))
        self.moved(self.adopt(self.here))
        after = naive.items(self.line)
        if not isinstance(answer, Refused):
            assert expect(before) == after
        assert not old or old in {record.hash for record in self.line}
        return answer

    def moved(self, tips: dict[str, dict[str, str]]) -> None:
        """The current branch stands elsewhere."""
        place = self.place
        place.tips[place.branch] = tips[self.here][place.branch]

    @property
    def place(self) -> Place:
        return self.log.sessions[self.here]

    @property
    def tip(self) -> str:
        return self.place.tips[self.place.branch]

    @property
    def line(self) -> list[Record]:
        return self.log.line(self.tip)

    def say(self, words: list[str]) -> str:
        """A text that no other is like."""
        self.texts += 1
        return " ".join((f"t{self.texts}", *words))

    def family(self) -> list[tuple[str, str]]:
        """(session, branch) of all of the family, this session's first."""
        found = [
            (id, name)
            for id, place in self.log.sessions.items()
            for name in place.tips
            if place.family == self.place.family
        ]
        return sorted(found, key=lambda one: (one[0] != self.here, one))

    def name_of(self, at: tuple[str, str]) -> str:
        """How a branch of the family is named from here."""
        return at[1] if at[0] == self.here else f"{at[0]}:{at[1]}"

    # -- by hand ---------------------------------------------------------------------------------------------------

    @initialize(calls=st.integers(0, 1))
    def begin(self, calls: int) -> None:
        self.new_session()
        self.commit(words=["apple"], tags=(), kind="user")
        self.ask(words=["pear"], thought=["plum"], calls=calls)

    @rule()
    def new_session(self) -> None:
        if len(self.log.sessions) < 2:
            name = f"s{self.actions}"
            self.here = str(self.do(lambda world: world.session(name).id))
            self.do(lambda world: world.keep(world.session(name)))
            self.log.sessions[self.here] = Place(self.here, {"main": ""})

    @rule(at=number)
    def visit(self, at: int) -> None:
        self.here = chosen(sorted(self.log.sessions), at)

    @rule(words=words, tags=tags, kind=st.sampled_from(["user", "user", "system", "assistant", "note", "aside", "law"]))
    def commit(self, words: list[str], tags: tuple[str, ...], kind: str) -> None:
        text = self.say(words)
        word = "content" if kind in ("note", "aside", "law") else kind
        new = [(word, text, None, tuple(sorted(tags)))]
        waits = bool(naive.open_calls(self.line)) and word in ("user", "assistant")
        answer = self.grow(lambda session: session.commit(text, kind=kind, tags=tags), lambda items: items + new)
        assert waits == isinstance(answer, Refused)

    @rule(words=words, tags=tags)
    def think(self, words: list[str], tags: tuple[str, ...]) -> None:
        text = self.say(words)
        new = [("reasoning", text, None, tuple(sorted(tags)))]
        self.grow(lambda session: session.reasoning(text, tags=tags), lambda items: items + new)

    @rule(words=words, thought=words, calls=st.integers(0, 2))
    def ask(self, words: list[str], thought: list[str], calls: int) -> None:
        question = self.say(words)
        body, new = self.response(thought, calls)
        asked: list[Item] = [("user", question, None, ()), *new]

        def act(session: Session) -> str | None:
            session.wire.plan(question, tools=[TOOL], stream=False)
            return session.wire.ingest(body).state

        before = naive.items(self.line)
        self.grow(act, lambda items: before + closed(self.line, len(before)) + asked)

    @rule(words=words, thought=words, calls=st.integers(0, 1), long=st.booleans())
    def answer(self, words: list[str], thought: list[str], calls: int, long: bool) -> None:
        waiting = naive.open_calls(self.line)
        if not waiting:
            return
        results = {id: self.say(words) + " and so on" * (100 if long else 0) for id in waiting}
        body, new = self.response(thought, calls)
        given: list[Item] = [*(("tool_result", text, None, ()) for text in results.values()), *new]

        def act(session: Session) -> str | None:
            session.wire.plan(tool_results=results, stream=False)
            return session.wire.ingest(body).state

        self.grow(act, lambda items: items + given)

    def response(self, words: list[str], calls: int) -> tuple[str, list[Item]]:
        """What a provider answers, and what is to be in the log of it."""
        thought, text = self.say(words), self.say(words)
        asked = [(f"call_{self.texts}_{at}", self.say(words)) for at in range(calls)]
        message: dict[str, Any] = {"role": "assistant", "content": text, "reasoning_content": thought}
        if asked:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": "look", "arguments": json.dumps({"at": text})}}
                for id, text in asked
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if asked else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        body = {"id": f"r{self.texts}", "model": PLACE["model"], "choices": [choice], "usage": usage}
        items: list[Item] = [("reasoning", thought, None, ()), ("assistant", text, None, ())]
        items += [("tool_call", f"look at: {text}", None, ()) for _, text in asked]
        return json.dumps(body), items

    # -- curation --------------------------------------------------------------------------------------------------

    @rule(at=number, words=words)
    def edit(self, at: int, words: list[str]) -> None:
        line = self.line
        if line:
            text = self.say(words)
            target = said_or_any(line, at)
            self.grow(
                lambda session: session.commit(text, edit=target.hash),
                lambda items: changed(line, target, lambda item: (item[0], text, *item[2:])),
            )

    @rule(at=number, version=st.integers(0, 2))
    def restore(self, at: int, version: int) -> None:
        line = self.line
        if line:
            target = said_or_any(line, at)
            said = naive.fold(line)[root(line, target)]
            answer = self.grow(
                lambda session: session.restore(target.hash, version),
                lambda items: changed(
                    line, target, lambda item: (item[0], naive.readable(said.versions[version]), *item[2:])
                ),
            )
            is_there = version < len(said.versions) and bool(naive.left(said.versions[version]))
            assert is_there or isinstance(answer, Refused)

    @rule(at=number, priority=st.sampled_from([None, *Priority]), tags=tags, untag=tags, default=st.booleans())
    def annotate(
        self, at: int, priority: Priority | None, tags: tuple[str, ...], untag: tuple[str, ...], default: bool
    ) -> None:
        line = self.line
        if line:
            target = said_or_any(line, at)
            default = default and priority is None

            def mark(item: Item) -> Item:
                said = str(priority) if priority is not None else None if default else item[2]
                return item[0], item[1], said, tuple(sorted({*item[3], *tags} - set(untag)))

            self.grow(
                lambda session: session.annotate(target.hash, priority, default=default, tags=tags, untag=untag),
                lambda items: changed(line, target, mark),
            )

    @rule(at=number, words=words, fails=st.booleans())
    def batch(self, at: int, words: list[str], fails: bool) -> None:
        line = self.line
        if not line or naive.open_calls(line):
            return
        one, two, target = self.say(words), self.say(words), chosen(line, at)

        def act(session: Session) -> None:
            with session.batch() as batch:
                batch.commit(one)
                batch.reasoning(two, tags=TAGS)
                batch.annotate(target.hash, tags=TAGS)
                if fails:
                    batch.annotate("no such commit")

        new: list[Item] = [("user", one, None, ()), ("reasoning", two, None, tuple(sorted(TAGS)))]
        answer = self.grow(
            act,
            lambda items: changed(line, target, lambda item: (*item[:3], tuple(sorted({*item[3], *TAGS})))) + new,
        )
        assert fails == isinstance(answer, Refused)
        if fails:
            assert line == self.line

    # -- branches --------------------------------------------------------------------------------------------------

    @rule(at=number, switch=st.booleans())
    def branch(self, at: int, switch: bool) -> None:
        place, line = self.place, self.line
        if len(place.tips) < BRANCHES:
            name = f"b{self.actions}"
            target = chosen(line, at) if line else None
            self.do(
                lambda world: world.session(self.here).branches.branch(
                    name, target.hash if target else "HEAD", switch=switch
                )
            )
            place.tips[name] = line[naive.whole(line, line.index(target))].hash if target else ""
            if switch:
                place.before, place.branch = place.branch, name

    @rule(at=number)
    def switch(self, at: int) -> None:
        place = self.place
        name = chosen([*sorted(place.tips), "-"], at)
        if name == "-" and place.before not in place.tips:
            return
        self.do(lambda world: world.session(self.here).branches.switch(name))
        wanted = place.before if name == "-" else name
        if wanted != place.branch:
            place.before, place.branch = place.branch, wanted

    @rule(at=number)
    def look(self, at: int) -> None:
        if not self.log.records:
            return
        place = self.place
        hash = chosen(sorted(self.log.records), at)

        def act(session: Session) -> list[str]:
            session.branches.switch(hash)
            seen = [commit.hash for commit in session.log()]
            with pytest.raises(ThinkbackError):
                session.commit("not here")
            session.branches.switch(place.branch)
            return seen

        answer = self.do(lambda world: act(world.session(self.here)))
        owner = self.log.records[hash].owner
        if isinstance(answer, Refused):
            self.do(lambda world: world.session(self.here).branches.switch(place.branch))
            assert owner not in self.log.sessions or self.log.sessions[owner].family != place.family
        else:
            assert [record.hash for record in self.log.line(hash)] == answer
            place.before = place.branch

    @rule(at=number)
    def reset(self, at: int) -> None:
        line = self.line
        if line:
            target = chosen(line, at)
            self.do(lambda world: world.session(self.here).branches.reset(target.hash))
            self.place.tips[self.place.branch] = line[naive.whole(line, line.index(target))].hash

    @rule(at=number, force=st.booleans())
    def delete(self, at: int, force: bool) -> None:
        place = self.place
        name = chosen(sorted(place.tips), at)
        answer = self.do(lambda world: world.session(self.here).branches.delete(name, force=force))
        others = {
            record.hash
            for one in self.family()
            if one != (self.here, name)
            for record in self.log.line(self.log.sessions[one[0]].tips[one[1]])
        }
        held = not place.tips[name] or place.tips[name] in others
        assert isinstance(answer, Refused) == (name == place.branch or not (force or held))
        if not isinstance(answer, Refused):
            del place.tips[name]

    @rule(at=number)
    def fork(self, at: int) -> None:
        line = self.line
        if len(self.log.sessions) < SESSIONS:
            name = f"f{self.actions}"
            target = chosen(line, at) if line else None
            id = str(
                self.do(
                    lambda world: world.keep(
                        world.session(self.here).branches.fork(name, target.hash if target else "HEAD")
                    )
                )
            )
            tip = line[naive.whole(line, line.index(target))].hash if target else ""
            self.log.sessions[id] = Place(self.place.family, {"main": tip})

    @rule(inheritance=st.sampled_from(["head_snapshot", "selective"]))
    def spawn(self, inheritance: Any) -> None:
        if len(self.log.sessions) < SESSIONS:
            name = f"c{self.actions}"
            id = str(self.do(lambda world: world.keep(spawn(world.session(self.here), name, inheritance=inheritance))))
            old = set(self.log.records)
            tips = self.adopt(id)
            self.copies |= self.log.records.keys() - old
            self.log.sessions[id] = Place(self.place.family, tips[id])

    @rule(at=number, words=words)
    def collapse(self, at: int, words: list[str]) -> None:
        child = chosen(self.family(), at)[0]
        text = self.say(words)
        new: list[Item] = [("branch_summary", text, None, ())]
        if child != self.here:
            old = self.line
            answer = self.do(lambda world: collapse(world.session(child), world.session(self.here), text))
            self.moved(self.adopt(self.here))
            if not isinstance(answer, Refused):
                assert naive.items(old) + new == naive.items(self.line)

    @rule(
        there=deeds,
        here=deeds,
        then=st.sampled_from(["merge", "merge", "rebase", "pick", ""]),
        at=number,
        choice=number,
    )
    def work_apart(
        self, there: list[tuple[str, int]], here: list[tuple[str, int]], then: str, at: int, choice: int
    ) -> None:
        """Two branches go on from one commit, and one may take in the other."""
        place = self.place
        if naive.open_calls(self.line):
            self.answer(words=[], thought=[], calls=0, long=False)
        if len(place.tips) >= BRANCHES:
            self.delete(at=at, force=True)
        if len(place.tips) >= BRANCHES:
            return
        one = place.branch
        self.branch(at=0, switch=True)
        two = place.branch
        for deed, which in there:
            self.deed(deed, which)
        self.switch(at=position([*sorted(place.tips), "-"], one))
        for deed, which in here:
            self.deed(deed, which)
        source = position(self.family(), (self.here, two))
        if then == "merge":
            self.merge(at=source, strategy=("auto", "auto", "ours", "theirs")[at % 4], no_ff=False, choice=choice)
        elif then == "rebase":
            self.rebase(at=source)
        elif then == "pick":
            self.pick(at=source, which=choice)

    def deed(self, deed: str, which: int) -> None:
        """One of the things that merges are about."""
        match deed:
            case "say":
                self.commit(words=["plum"], tags=("red",), kind="user")
            case "ask":
                self.ask(words=[], thought=["pear"], calls=0)
            case "edit":
                self.edit(at=which, words=["apple"])
            case "restore":
                self.restore(at=which, version=0)
            case "compact":
                self.compact(strategy="manual", tail=1, words=[])
            case _:
                self.annotate(at=which, priority=Priority(deed), tags=("green",), untag=("red",), default=False)

    # -- taking in -------------------------------------------------------------------------------------------------

    @rule(at=number, strategy=st.sampled_from(["auto", "auto", "ours", "theirs"]), no_ff=st.booleans(), choice=number)
    def merge(self, at: int, strategy: Any, no_ff: bool, choice: int) -> None:
        source = chosen(self.family(), at)
        ours, theirs = self.line, self.log.line(self.log.sessions[source[0]].tips[source[1]])
        name = self.name_of(source)
        expected = Merged(ours, theirs)
        simple = expected.is_simple and self.copies.isdisjoint(record.hash for record in (*ours, *theirs))
        choices = dict.fromkeys(expected.conflicts, strategy)
        answer = self.do(lambda world: world.session(self.here).branches.merge(name, strategy, no_ff=no_ff))
        if isinstance(answer, MergeResult) and answer.kind in ("clean", "conflicts") and simple:
            assert expected.conflicts == {conflict.target: conflict.kind for conflict in answer.conflicts}
        if isinstance(answer, MergeResult) and answer.kind == "conflicts":
            assert strategy == "auto"
            assert self.adopt(self.here)[self.here][self.place.branch] == self.tip
            edited, found = self.say([]), answer
            choices = {
                conflict.target: ("ours", "theirs", edited)[(choice + at) % 3]
                for at, conflict in enumerate(found.conflicts)
            }

            def settle(session: Session) -> MergeResult:
                return session.branches.commit_merge(msgspec.structs.replace(found, resolutions=dict(choices)))

            answer = self.do(lambda world: settle(world.session(self.here)))
        self.copied(ours)
        if isinstance(answer, Refused):
            assert answer.error in ("OpenTurnError", "UnsupportedContent", "NotFoundError"), answer
            assert ours == self.line
            return
        self.check_merge(answer, ours, theirs, no_ff)
        if answer.kind == "clean" and simple:
            assert expected.items(choices) == naive.items(self.line)

    def copied(self, ours: list[Record]) -> None:
        """The current branch has copies behind ``ours``."""
        old = set(self.log.records)
        self.moved(self.adopt(self.here))
        self.copies |= {record.hash for record in self.line[len(ours) :]} - old

    def check_merge(self, result: MergeResult, ours: list[Record], theirs: list[Record], no_ff: bool) -> None:
        """Nothing is lost, nothing is invented, and ours stands first."""
        now = self.line
        if all(record in ours for record in theirs):
            assert result.kind == "up_to_date"
        elif ours == theirs[: len(ours)] and not no_ff:
            assert (result.kind, now) == ("fast_forward", theirs)
        assert ours == now[: len(ours)]
        assert (result.kind == "up_to_date") == (now == ours)
        if result.kind == "clean":
            assert now[-1].kind == "merge"
        self.check_taken(ours, theirs)

    def check_taken(self, ours: list[Record], theirs: list[Record]) -> None:
        """What was added says what theirs said at first, in that order; and all of that is there, but for results of
        calls that ours answered too.
        """
        answered = {naive.left(r.body).get("id", "") for r in ours if r.kind == "tool_result"}
        added = [
            (r.kind, naive.readable(r.body)) for r in self.line[len(ours) :] if r.kind in naive.SAID and not r.edit
        ]
        said = [r for r in theirs if r.kind in naive.SAID and not r.edit]
        rest = iter([(r.kind, naive.readable(r.body)) for r in said])
        assert all(one in rest for one in added)
        settled = {r.hash for r in said if r.kind == "tool_result" and naive.left(r.body).get("id", "") in answered}
        here = {(r.kind, naive.readable(r.body)) for r in self.line if r.kind in naive.SAID and not r.edit}
        assert {(r.kind, naive.readable(r.body)) for r in said if r.hash not in settled} <= here

    @rule(at=number, which=number)
    def pick(self, at: int, which: int) -> None:
        source = chosen(self.family(), at)
        theirs, ours = self.log.line(self.log.sessions[source[0]].tips[source[1]]), self.line
        if theirs:
            target = chosen(theirs, which)
            answer = self.do(lambda world: world.session(self.here).branches.cherry_pick(target.hash))
            self.copied(ours)
            assert ours == self.line[: len(ours)]
            if isinstance(answer, Refused):
                assert ours == self.line
            else:
                assert naive.readable(target.body) in {naive.readable(r.body) for r in self.line[len(ours) :]}

    @rule(at=number)
    def rebase(self, at: int) -> None:
        source = chosen(self.family(), at)
        ours, onto = self.line, self.log.line(self.log.sessions[source[0]].tips[source[1]])
        answer = self.do(lambda world: world.session(self.here).branches.rebase(self.name_of(source)))
        self.copied([])
        if isinstance(answer, Refused) or onto == ours[: len(onto)]:
            assert ours == self.line
        else:
            assert onto == self.line[: len(onto)]
            self.check_taken(onto, ours)

    # -- care ------------------------------------------------------------------------------------------------------

    @rule(
        strategy=st.sampled_from(["deterministic", "manual", "sliding_window", "tool_results"]),
        tail=st.integers(0, 3),
        words=words,
    )
    def compact(self, strategy: str, tail: int, words: list[str]) -> None:
        text = self.say(words) if strategy == "manual" else ""
        before = self.line
        answer = self.grow(
            lambda session: session.compaction.run(strategy, tail, text=text, size=20), lambda items: items
        )
        if isinstance(answer, Commit):
            body = self.line[-1].body
            said = naive.fold(before)
            run = [said[r.hash] for r in before if r.hash in said and self.is_inside(before, body, r.hash)]
            pinned = [found for found in run if found.priority == "pinned" and found.record.kind == "user"]
            assert all(found.record.hash in body.get("kept", ()) for found in pinned)

    def is_inside(self, line: list[Record], body: dict[str, Any], hash: str) -> bool:
        """Whether a checkpoint's run has the commit."""
        places = [record.hash for record in line]
        return bool(body.get("first")) and (
            places.index(body["first"]) <= places.index(hash) <= places.index(body["last"])
        )

    @rule(at=number, word=st.sampled_from(VOCABULARY))
    def redact(self, at: int, word: str) -> None:
        if not self.log.records:
            return
        target = chosen(sorted(self.log.records), at)
        self.do(lambda world: erasure(world.store.care.redact(target, rf"\b{word}\b")))
        texts = {hash: naive.readable(record.body) for hash, record in self.log.records.items()}
        self.read_again()
        for hash, record in self.log.records.items():
            without = re.sub(rf"\b{word}\b", "[redacted]", texts[hash])
            assert naive.readable(record.body) in (texts[hash], without)
            assert hash != target or naive.readable(record.body) == without

    @rule(back=number)
    def purge(self, back: int) -> None:
        if back % 4:
            return
        time = max(0, self.actions - back) * 1_000
        self.do(lambda world: erasure(world.store.care.purge(before=time, reason="old")))
        texts = {hash: naive.readable(record.body) for hash, record in self.log.records.items()}
        self.read_again()
        for hash, record in self.log.records.items():
            gone = record.kind not in ("tools", "merge") and self.log.began(record) < time
            assert ("" if gone else texts[hash]) == naive.readable(record.body)

    def read_again(self) -> None:
        """What is stored of every commit now, on a branch or not."""
        for world in self.worlds:
            world.forget()
        for place in self.log.sessions.values():
            place.before = ""
        log = self.worlds[0].store.log
        for hash, record in self.log.records.items():
            record.body = json.loads(log.find_commit(hash)[1].payload)

    @rule(back=st.sampled_from([0, 0, 3, 10]))
    def collect(self, back: int) -> None:
        older = FOREVER if back == 0 else max(0, self.actions - back) * 1_000
        gone = self.log.collectable(older)

        def act(world: World) -> int:
            found: Removed = world.store.log.care.gc(older)
            return found.commits

        assert len(gone) == self.do(act)
        self.log.remove(gone)
        self.resolve()

    @rule(at=number)
    def delete_session(self, at: int) -> None:
        if len(self.log.sessions) > 2:
            id = chosen(sorted(self.log.sessions), at)
            gone = self.log.left_by(id)
            self.do(lambda world: erasure(world.store.care.delete_session(id)))
            for world in self.worlds:
                world.forget()
            del self.log.sessions[id]
            self.log.remove(gone)
            for place in self.log.sessions.values():
                place.before = ""
            self.here = sorted(self.log.sessions)[0]
            self.resolve()

    @rule()
    def reopen(self) -> None:
        for world in self.worlds:
            world.reopen()
        for place in self.log.sessions.values():
            place.before = ""

    # -- what always holds -----------------------------------------------------------------------------------------

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        self.stores_say_the_same()
        self.branches_are_where_the_model_says()
        self.session_tells_what_the_model_tells()
        self.search_finds_what_the_model_holds()
        self.resolve(self.worlds[:1])

    def stores_say_the_same(self) -> None:
        """Sessions, branches and commits are equal field by field, and every log is sound."""
        first, *others = (looks(world.store) for world in self.worlds)
        assert all(first == other for other in others)
        assert all([] == world.store.fsck() for world in self.worlds)

    def branches_are_where_the_model_says(self) -> None:
        """And every commit there is as it was when it was stored, erasing aside."""
        sessions, lines = looks(self.worlds[0].store)
        assert {id: (place.family, place.branch) for id, place in self.log.sessions.items()} == {
            info.id: (info.family, info.branch) for info in sessions
        }
        assert {(id, name) for id, place in self.log.sessions.items() for name in place.tips} == lines.keys()
        for (id, name), commits in lines.items():
            line = self.log.line(self.log.sessions[id].tips[name])
            assert line == [plain(commit, self.log.records[commit.hash].owner) for commit in commits]

    def session_tells_what_the_model_tells(self) -> None:
        """Log, versions, and what goes to a model."""
        if not self.here:
            return
        for world in self.worlds:
            session = world.session(self.here)
            line = self.line
            assert [record.hash for record in line] == [commit.hash for commit in session.log()]
            for tag in TAGS:
                tagged = [hash for hash, said in naive.fold(line).items() if tag in said.tags]
                assert tagged == [commit.hash for commit in session.log(tags=[tag])]
            expected = naive.told(line)
            assert expected == self.told(session)
            assert expected == list(compiled(session))
            snapshot = [message["content"] for message in neutral(session.log()) if message["role"] != "system"]
            assert expected == tokens(" ".join(snapshot))

    def told(self, session: Session) -> list[str]:
        """What the next request tells a model; nothing where there is nothing to tell."""
        self.clock.restart(self.actions)
        try:
            return list(sent(session.explain(next=True).messages))
        except ContextRefused:
            return []

    def search_finds_what_the_model_holds(self) -> None:
        """Of what is there, and of what the session's branches reach."""
        for word in VOCABULARY:
            everywhere = {hash for hash, record in self.log.records.items() if naive.holds(record, word)}
            for world in self.worlds:
                assert everywhere == {found.hit.hash for found in world.store.search(word, limit=5_000)}
            if self.here:
                reached = {r.hash for tip in self.place.tips.values() for r in self.log.line(tip)}
                for world in self.worlds:
                    found = {one.hit.hash for one in world.session(self.here).search(word, limit=5_000)}
                    assert everywhere & reached == found

    def resolve(self, worlds: list[World] | None = None) -> None:
        """Every commit that ever was is found, unless it was collected or deleted."""
        for world in worlds or self.worlds:
            for hash, record in self.log.records.items():
                assert plain(world.store.log.find_commit(hash)[1], record.owner) == record
            for hash in self.log.gone:
                with pytest.raises(NotFoundError):
                    world.store.log.find_commit(hash)


def chosen(of: list[T], at: int) -> T:
    """One of a list, any number does; the last ones first."""
    return of[-1 - at % len(of)]


def position(of: list[T], wanted: T) -> int:
    """The number by which ``chosen`` gives ``wanted``."""
    return len(of) - 1 - of.index(wanted)


def said_or_any(line: list[Record], at: int) -> Record:
    """Mostly something that is said."""
    said = [record for record in line if record.kind in naive.SAID and not record.edit]
    return chosen(said if said and at % 7 else line, at)


def root(line: list[Record], target: Record) -> str:
    """What was first edited."""
    edits = {record.hash: record.edit for record in line}
    hash = target.hash
    while edits.get(hash):
        hash = edits[hash]
    return hash


def changed(line: list[Record], target: Record, change: Callable[[Item], Item]) -> list[Item]:
    """What a line says when ``target`` is another."""
    about = root(line, target)
    said = [found for found in naive.fold(line).values() if found.record.kind in naive.SAID]
    return [change(naive.item(found)) if found.record.hash == about else naive.item(found) for found in said]


def closed(line: list[Record], since: int) -> list[Item]:
    """The results that say that a turn was broken off."""
    return [item for item in naive.items(line)[since:] if item[0] == "tool_result" and item[1].startswith(INTERRUPTED)]


CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def test_every_store_lives_as_the_model_does(postgres: Server, effort: Effort) -> None:
    """Whatever is done to sessions, all stores and the model say the same."""
    machine = type("Machine", (Machine,), {"server": postgres})
    wanted = settings(
        max_examples=effort.rounds(5, 300),
        stateful_step_count=effort.rounds(20, 50),
        suppress_health_check=CHECKS,
    )
    run_state_machine_as_test(seed(effort.seed)(machine), settings=wanted)
