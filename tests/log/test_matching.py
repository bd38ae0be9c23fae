"""What of a request is known: the longest beginning, then message by message; never what is not surely the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.log.echo_digests import EchoedMessage, call_ids, echoed_messages, narrowed, of_call, of_response
from thinkback.log.matching import (
    BY_CALLS,
    CANDIDATES,
    Recognised,
    Search,
    beginning,
    cut_sightings,
    line_sightings,
    recognise,
    sightings,
)
from thinkback.log.protocol import Seen, Sighting
from thinkback.log.twins import Marks
from thinkback.model.blocks import Block, Origin, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Draft, Head, Message, Response, block_draft
from thinkback.model.think_tags import Edition, TagSplitter, Where

SCOPE = b"scope of a test."
_UNMARKED = Marks()


class Turn(NamedTuple):
    """What somebody says: a user (``asks``), a model (``answers``, with ids of calls), or tools (``gives``)."""

    role: str
    text: str
    calls: tuple[str, ...] = ()


def asks(text: str) -> Turn:
    return Turn("user", text)


def answers(text: str, *calls: str) -> Turn:
    return Turn("assistant", text, calls)


def gives(*calls: str) -> Turn:
    return Turn("tool", "done", calls)


def drafts(turns: Iterable[Turn], response: str = "echo") -> list[Draft]:
    """The turns as a request reader would give them."""
    made: list[Draft] = []
    for at, turn in enumerate(turns):
        if turn.role == "user":
            made.append(Draft("user", Message(turn.text)))
        elif turn.role == "tool":
            made += [Draft("tool_result", ToolResult(id, turn.text)) for id in turn.calls]
        else:
            id = f"{response}-{at}" if response == "echo" else response
            blocks: list[Block] = [Text(turn.text), *(ToolCall(call, "look", "{}") for call in turn.calls)]
            made.append(Draft("response", Response(Origin("", "", ""), blocks=len(blocks)), id))
            made += [block_draft(block, id, number) for number, block in enumerate(blocks)]
    return made


class Book:
    """What a store knows by digests. ``prefixes``: of each response, the values of the messages up to it."""

    def __init__(self) -> None:
        self.rows: dict[bytes, list[Seen]] = {}
        self.prefixes: dict[str, list[EchoedMessage]] = {}
        self.queries: list[int] = []
        self._numbers = itertools.count()

    def record(self, asked: Sequence[Turn], answer: Turn, id: str = "", marks: Marks = _UNMARKED) -> str:
        """A response to what was asked."""
        response = f"response {next(self._numbers)}"
        before, made = drafts(asked), drafts([answer], response)
        for sighting in sightings(SCOPE, before, echoed_messages(before), made, id, marks=marks):
            seen = Seen(sighting.digest, "session", "main", Head(response, 0), sighting.response)
            self.rows.setdefault(sighting.digest, []).insert(0, seen)
        self.prefixes[response] = echoed_messages([*before, *made])
        return response

    def converse(self, *turns: Turn) -> list[str]:
        """A whole conversation, step by step; the ids of its responses."""
        return [self.record(turns[:at], turn) for at, turn in enumerate(turns) if turn.role == "assistant"]

    def lookup(self, digests: list[bytes]) -> list[Seen]:
        self.queries.append(len(digests))
        return [seen for digest in digests for seen in self.rows.get(digest, [])[:CANDIDATES]]

    def recognise(self, *turns: Turn, marks: Marks = _UNMARKED) -> Recognised:
        return recognise(echoed_messages(drafts(turns)), self.lookup, marks)


def of(found: Seen | None) -> str:
    return found.response if found is not None else ""


def test_a_conversation_goes_on() -> None:
    """The newest answer ends the beginning that is known; one query of few digests does."""
    book = Book()
    first, second = book.converse(asks("a"), answers("b"), asks("c"), answers("d"))
    found = book.recognise(asks("a"), answers("b"), asks("c"), answers("d"), asks("e"))
    assert (second, 3, {}, ()) == (of(found.base), found.through, found.restored, found.missing)
    assert [2] == book.queries
    assert first != second


def test_an_edited_history_is_known_up_to_the_edit() -> None:
    """What follows is another branch."""
    book = Book()
    first, _ = book.converse(asks("a"), answers("b"), asks("c"), answers("d"))
    found = book.recognise(asks("a"), answers("b"), asks("other"), answers("d"), asks("e"))
    assert (first, 1, {}, ((3, "unknown"),)) == (of(found.base), found.through, found.restored, found.missing)


def test_a_history_that_lost_its_beginning_is_known_by_its_messages() -> None:
    """By their calls, and by the three messages before them."""
    book = Book()
    turns = [asks("a"), answers("b"), asks("c"), answers("d", "x1"), gives("x1"), answers("e"), asks("f"), answers("g")]
    ids = book.converse(*turns)
    found = book.recognise(*turns[2:], asks("h"))
    assert None is found.base
    assert {1: ids[1], 3: ids[2], 5: ids[3]} == {at: of(seen) for at, seen in found.restored.items()}
    assert () == found.missing


def test_of_two_answers_of_one_look_the_newest_goes_on() -> None:
    """An id of a call decides before, where it is one conversation's alone."""
    book = Book()
    (_,), (newest,) = book.converse(asks("a"), answers("b")), book.converse(asks("a"), answers("b"))
    found = book.recognise(asks("a"), answers("b"), asks("c"))
    assert (newest, ()) == (of(found.base), found.missing)
    assert "2 conversations have these words; the newest was chosen" == str(found.choice)
    (one,), (_,) = book.converse(asks("x"), answers("y", "1")), book.converse(asks("x"), answers("y", "2"))
    found = book.recognise(asks("x"), answers("y", "1"), gives("1"))
    assert (one, BY_CALLS) == (of(found.base), found.choice and found.choice.by)


def test_ids_of_earlier_calls_decide_too() -> None:
    """They are the client's own, wherever they stand."""
    book = Book()
    turns = [[asks("x"), answers("y", id), gives(id), answers("z")] for id in ("1", "2")]
    ids = [book.converse(*each)[-1] for each in turns]
    assert ids == [of(book.recognise(*each, asks("more")).base) for each in turns]


def test_a_name_decides_before_ids_and_they_before_the_rest() -> None:
    """A program may number its calls anew, and two runs of it have the same name."""
    book = Book()
    one, other = (Marks(bytes([at]) * 16, b"c" * 16) for at in (1, 2))
    mine, again, named = (
        book.record([asks("x")], answers("y", id), marks=marks) for id, marks in (("1", one), ("2", one), ("3", other))
    )
    turns = [asks("x"), answers("y", "1"), gives("1")]
    found = book.recognise(*turns, marks=one)
    assert (mine, f"{BY_CALLS}, of this name, with equal system and tools") == (
        of(found.base),
        str(found.choice and found.choice.by),
    )
    assert named == of(book.recognise(*turns, marks=other).base)
    assert mine == of(book.recognise(*turns, marks=Marks(context=b"c" * 16)).base)
    assert again == of(book.recognise(asks("x"), answers("y", "2"), gives("2"), marks=Marks(context=b"d" * 16)).base)


def test_a_name_tells_calls_and_neighbours_apart_that_many_have() -> None:
    """Where the beginning of a conversation was changed; of two with the name neither."""
    book = Book()
    turns = [asks("a"), answers("b", "look:0"), gives("look:0"), answers("c"), asks("d"), answers("e")]
    names = [Marks(bytes([at]) * 16) for at in (1, 2)]
    ids = [[book.record(turns[:at], turns[at], marks=name) for at in (1, 3, 5)] for name in names]
    changed = [asks("A"), *turns[1:], asks("f")]
    for name, own in zip(names, ids, strict=True):
        found = book.recognise(*changed, marks=name)
        assert {1: own[0], 5: own[2]} == {at: of(seen) for at, seen in found.restored.items()}
        assert ((3, "unknown"),) == found.missing
    book.record(turns[:1], turns[1], marks=names[0])
    found = book.recognise(*changed[:3], marks=names[0])
    assert (((1, "ambiguous"),), 3) == (found.missing, len(found.doubtful[1]))


def test_ids_decide_in_logs_that_have_no_digest_of_all_of_them() -> None:
    """Those of versions that knew each call for itself."""
    book = Book()
    one, other = (book.converse(asks("x"), answers("y", id))[0] for id in ("1", "2"))
    kept = {digest for rows in book.rows.values() for digest in [rows[0].digest] if len(rows) == 2}
    kept |= {of_call(f"{id}\nlook\n{{}}") for id in ("1", "2")}
    book.rows = {digest: rows for digest, rows in book.rows.items() if digest in kept}
    assert one == of(book.recognise(asks("x"), answers("y", "1"), gives("1")).base)
    assert other == of(book.recognise(asks("x"), answers("y", "2"), gives("2")).base)


NAMED = [
    Marks(*(bytes([mark]) * 16 if mark else b"" for mark in each)) for each in itertools.product((0, 1, 2), repeat=3)
]


@given(st.lists(st.sampled_from(NAMED), min_size=1, max_size=12), st.sampled_from(NAMED), st.booleans())
def test_among_equal_conversations_marks_decide_then_the_newest(kept: list[Marks], asked: Marks, counted: bool) -> None:
    """The name first, then system and tools, then the client, whatever number there is of the others."""
    book = Book()
    calls = ("functions.look:0",) if counted else ()
    turns = [asks("a"), answers("b", *calls)]
    for marks in kept:
        book.record(turns[:1], turns[1], marks=marks)
    found = book.recognise(*turns, asks("c"), marks=asked)

    def shares(marks: Marks) -> list[bool]:
        return [one == other != b"" for one, other in zip(marks, asked, strict=True)]

    best = max(range(len(kept)), key=lambda at: (shares(kept[at]), at))
    assert f"response {best}" == of(found.base)
    assert (None if len(kept) == 1 else min(len(kept), CANDIDATES)) == (found.choice and found.choice.fitting)
    named = shares(kept[best])[0]
    alike = [at for at, marks in enumerate(kept) if shares(marks)[:2] == [named, True] and at != best]
    alike.sort(key=lambda at: (shares(kept[at]), at), reverse=True)
    if len(alike) < CANDIDATES:  # of more the newest are known
        assert [f"response {at}" for at in alike] == [seen.response for seen in found.others]


def test_others_of_equal_system_and_tools_have_the_ids_of_the_request_where_these_tell() -> None:
    """So that no conversation goes on with the calls of another."""
    book = Book()
    marks = Marks(context=b"c" * 16)
    ids = [book.record([asks("x")], answers("y", id), marks=marks) for id in ("1", "2", "1")]
    found = book.recognise(asks("x"), answers("y", "1"), gives("1"), marks=marks)
    assert (ids[2], [ids[0]]) == (of(found.base), [seen.response for seen in found.others])


def test_each_of_a_hundred_named_conversations_is_found() -> None:
    """The name is asked for before there is a limit, and the ids of calls are everybody's."""
    book = Book()
    turns = [asks("a"), answers("b", "functions.look:0")]
    names = [Marks(bytes([at]) * 16, b"c" * 16, b"i" * 16) for at in range(100)]
    ids = [book.record(turns[:1], turns[1], marks=marks) for marks in names]
    found = [book.recognise(*turns, gives("functions.look:0"), marks=marks) for marks in names]
    assert ids == [of(each.base) for each in found]
    assert (
        "8 or more conversations have these words; the newest of this name, with equal system and tools, of the same "
        "client was chosen" == str(found[0].choice)
    )


def test_a_whole_history_is_known_by_its_beginning() -> None:
    """Up to the model's first message, with all that is neighbour to it."""
    turns = [asks("a"), answers("b", "1"), answers("c"), gives("1"), answers("d")]
    digests = beginning(echoed_messages(drafts(turns)))
    assert [Sighting(SCOPE, digests[0], "last")] == line_sightings(SCOPE, drafts(turns), "last")
    assert digests == beginning(echoed_messages(drafts(turns[:3]))) != beginning(echoed_messages(drafts(turns[:2])))
    assert [] == line_sightings(SCOPE, drafts(turns[:1]), "last")
    assert [] == beginning([])


def test_an_answer_that_broke_off_is_found_by_what_stands_before_it() -> None:
    """Its client keeps as much of it as it likes."""
    book = Book()
    asked = echoed_messages(drafts([asks("a"), answers("b"), asks("c")]))
    (seen,) = cut_sightings(SCOPE, asked, "cut")
    book.rows[seen.digest] = [Seen(seen.digest, "session", "main", Head("cut", 0), "cut")]
    found = book.recognise(asks("a"), answers("b"), asks("c"), answers("so"), asks("d"))
    assert {3: ["cut"]} == {at: [of(each) for each in cuts] for at, cuts in found.cuts.items()}
    assert [seen] == cut_sightings(SCOPE, asked, "cut", links=Search(asked).links)
    assert [] == cut_sightings(SCOPE, asked[:2], "cut") == cut_sightings(SCOPE, [], "cut")


def test_an_answer_that_stands_under_several_rows_is_one() -> None:
    """Rows of the same response are one candidate, the first of them counts."""
    book = Book()
    (id,) = book.converse(asks("a"), answers("b"))
    for rows in book.rows.values():
        rows.append(Seen(rows[0].digest, "another", "main", Head("older", 0), id))
    found = book.recognise(asks("a"), answers("b"), asks("c"))
    assert found.base is not None
    assert ("session", id) == (found.base.session, found.base.response)


def test_calls_that_lead_to_several_answers_lead_to_none() -> None:
    """All calls of a message are of one response, or it is none."""
    book = Book()
    book.converse(asks("a"), answers("b", "1"))
    book.converse(asks("c"), answers("d", "2"))
    found = book.recognise(asks("q"), answers("z", "1", "2"), gives("1", "2"))
    assert (None, {}, ((1, "ambiguous"),)) == (found.base, found.restored, found.missing)


def test_an_answer_is_given_back_once() -> None:
    """A message that echoes what another one did before it has nothing."""
    book = Book()
    (id,) = book.converse(asks("a"), answers("b", "1"))
    found = book.recognise(asks("q"), answers("b", "1"), gives("1"), answers("b", "1"), gives("1"))
    assert ({1: id}, ((3, "repeated"),)) == ({at: of(seen) for at, seen in found.restored.items()}, found.missing)
    again = book.recognise(asks("a"), answers("b", "1"), gives("1"), answers("b", "1"), gives("1"))
    assert (1, ((3, "repeated"),)) == (again.through, again.missing)


def test_an_answer_behind_a_prefill_is_one_message_with_it() -> None:
    """The client gave the first words; what comes back has both in one."""
    book = Book()
    id = book.record([asks("a"), answers("The answer")], answers(" is 4."))
    found = book.recognise(asks("a"), answers("The answer is 4."), asks("b"))
    assert (id, 1) == (of(found.base), found.through)


def test_an_answer_is_found_by_the_id_that_its_client_got() -> None:
    """Also where nothing of it is visible."""
    book = Book()
    id = book.record([asks("a")], answers("b"), "resp_1")
    silent = book.record([asks("a")], answers(""), "resp_2")
    assert [id, silent] == [seen.response for seen in book.lookup([of_response("resp_1"), of_response("resp_2")])]


def test_the_chain_of_a_request_need_not_be_made_twice() -> None:
    """Sightings are the same with the links of the search."""
    asked = drafts([asks("a"), answers("b"), asks("c")])
    made = drafts([answers("d", "1")], "r")
    messages = echoed_messages(asked)
    links = Search(messages).links
    assert sightings(SCOPE, asked, messages, made) == sightings(SCOPE, asked, messages, made, links=links)
    assert [] == sightings(SCOPE, asked, messages, [])


def test_an_answer_is_found_under_no_other_digests_than_those_of_its_message() -> None:
    """By its chain, alone and with the ids of calls, its calls and its window, whoever keeps them."""
    book = Book()
    turns = [asks("a"), answers("b", "x1"), gives("x1"), answers("c")]
    book.converse(*turns)
    search = Search(echoed_messages(drafts(turns)))

    ids = [narrowed(search.links[at], call_ids(echoed_messages(drafts(turns)))) for at in (1, 3)]
    assert book.rows.keys() == {*ids, *(digest for at in (1, 3) for digest in search.digests_of(at))}
    assert set(search.digests_of(1)).isdisjoint(search.digests_of(3))


def test_a_long_unknown_history_takes_few_queries() -> None:
    """Batches grow; no digest is asked for twice."""
    book = Book()
    turns = [turn for at in range(5000) for turn in (asks(f"q{at}"), answers(f"a{at}"))]
    found = book.recognise(*turns)
    assert (None, 5000) == (found.base, len(found.missing))
    assert [2, 16, 128, 1024, 2048, 1782, 2048, 2048, 904, 8] == book.queries


texts = st.sampled_from(["a", "b"])
ids = st.sampled_from(["1", "2", "3", "4", "5", "6"])
steps = st.one_of(
    st.tuples(st.builds(asks, texts), st.builds(answers, texts)),
    st.tuples(st.builds(answers, texts, ids)).map(lambda turn: (turn[0], gives(*turn[0].calls))),
)
conversations = st.lists(steps, min_size=1, max_size=4).map(lambda parts: [turn for part in parts for turn in part])


@given(known=st.lists(conversations, max_size=5), kept=conversations, cut=st.integers(0, 3), end=st.integers(0, 8))
def test_nothing_is_found_that_is_not_surely_the_same(
    known: list[list[Turn]], kept: list[Turn], cut: int, end: int
) -> None:
    """The base is the longest beginning of one response alone; every other was found by its calls or its window."""
    book = Book()
    for turns in known:
        book.converse(*turns)
    turns = [*(known[0][cut:end] if known else []), *kept]
    messages = echoed_messages(drafts(turns))
    found = recognise(messages, book.lookup)
    values = [message.value for message in messages]

    def ends(at: int) -> set[str]:
        """The responses whose history is that of the message."""
        same = values[: at + 1]
        return {id for id, prefix in book.prefixes.items() if [one.value for one in prefix] == same}

    places = [at for at, message in enumerate(messages) if message.speaker == "assistant"]
    if found.base is not None:
        assert found.base.response in ends(found.through)
    assert (found.choice is not None) == (found.base is not None and len(ends(found.through)) > 1)
    assert not any(ends(at) for at in places if at > found.through)
    for at, seen in found.restored.items():
        own = book.prefixes[seen.response]
        window = [one.value for one in own[-4:]] == values[max(0, at - 3) : at + 1]
        assert window or set(messages[at].calls) <= set(own[-1].calls) != set()
    later = {at for at in places if at > found.through}
    assert later == {*found.restored, *(at for at, _ in found.missing)}
    assert len(found.restored) == len({seen.response for seen in found.restored.values()})


def seen_by(content: str, where: Where, edition: Edition) -> list[Draft]:
    """A response of ``content`` as it is recorded when its tags are read so; with ``off`` as if there were none."""
    pieces = TagSplitter(where, edition=edition)
    blocks: list[Block] = []
    for piece in (*pieces.feed(content), *pieces.close()):
        if piece.kind == "lone_close":
            blocks = [ThinkingBlock(block.text, source_field="content") for block in blocks if isinstance(block, Text)]
        elif piece.kind == "reasoning":
            blocks.append(ThinkingBlock(piece.text, source_field="content"))
        elif piece.kind == "text":
            blocks.append(Text(piece.text))
    header = Draft("response", Response(Origin("", "", ""), blocks=len(blocks)), "recorded")
    return [header, *(block_draft(block, "recorded", at) for at, block in enumerate(blocks))]


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("Hello <think>x</think> world", "anywhere"),
        ("Answer. <think>one two and", "anywhere"),
        ("<THINK>a</THINK>Hi", "start"),
        ("<THINK>a</THINK>Hi", "off"),
        ("Hello <think>x</think> world", "off"),
        ("Hello\n<think>x</think>\nworld", "lines"),
        ("Hello\n<think>x</think>\nworld", "anywhere"),
        ("<think>w</think><think>hy</think>Hi", "lines"),
        ('<think>x</think>He wrote "<think>" so', "start"),
        ('He wrote "<think>" so', "lines"),
        ('He wrote "<think>" so', "anywhere"),
        ("> ```\n> <think>\n> </think>\n> ```\nso", "start"),
        ("a `<think>\n</think>` b", "anywhere"),
        ('He wrote "</think>" so', "start"),
    ],
)
@pytest.mark.parametrize("edition", [2, 3])
def test_a_conversation_is_known_however_its_tags_were_read(content: str, where: Where, edition: Edition) -> None:
    """A client keeps the text with its tags; the second question goes on with it, and so does the third."""
    book, first = Book(), [asks("one?"), answers(content)]
    for at in (1, 3):
        asked = [*first, asks("two?"), answers(content)][:at]
        before = drafts(asked)
        made = [msgspec.structs.replace(draft, response=f"r{at}") for draft in seen_by(content, where, edition)]
        for sighting in sightings(SCOPE, before, echoed_messages(before), made):
            seen = Seen(sighting.digest, "session", "main", Head(f"r{at}", 0), sighting.response)
            book.rows.setdefault(sighting.digest, []).insert(0, seen)
    line = [*first, asks("two?"), answers(content), asks("three?")]

    for turns, expected in ((line[:3], ("r1", 1)), (line, ("r3", 3))):
        found = recognise(echoed_messages(drafts(turns)), book.lookup)
        assert found.base is not None
        assert expected == (found.base.response, found.through)
