"""From commits to what can be searched: entries, words, phrases, excerpts."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.log.protocol import Hit, Query
from thinkback.log.seal import seal
from thinkback.log.searching import (
    EXCERPT,
    LONGEST_WORD,
    PREFIX,
    UNREAD,
    IndexEntry,
    Placed,
    PriorityChange,
    Reading,
    asked,
    belongs_to,
    excerpt,
    fits,
    hit,
    holds,
    is_hopeless,
    joined,
    phrases,
    read,
    readable,
    words,
)
from thinkback.model import canonical
from thinkback.model.blocks import Block, Carrier, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import (
    Annotation,
    BranchSummary,
    Compaction,
    Content,
    Draft,
    Erased,
    Head,
    Merge,
    Message,
    Payload,
    Priority,
    Response,
    Step,
    Tools,
    TurnEnded,
    Usage,
    block_draft,
)

ORIGIN = Origin("openai-chat", "https://api.example.com/v1", "reasoner", "reasoner-2026-07")
MODELS = ("reasoner-2026-07", "reasoner")
PINNED = Annotation(priority=Priority.PINNED)


def placed(*drafts: Draft, family: str = "f", first: int = 1) -> list[Placed]:
    """The drafts as commits of one step, by arrival."""
    return [Placed(at, family, commit) for at, commit in enumerate(seal(Step("s", drafts, 7), Head()), first)]


def answer(*blocks: Block, usage: Usage | None = None, id: str = "r") -> list[Draft]:
    """A response of ``blocks``."""
    drafts = [Draft("response", Response(ORIGIN), id), *(block_draft(block, id, at) for at, block in enumerate(blocks))]
    return [*drafts, Draft("provider_usage", usage, id)] if usage else drafts


def entries(*drafts: Draft) -> list[IndexEntry]:
    """What a reader makes of them."""
    return read(placed(*drafts)).entries


def tokens(*blocks: Block, usage: Usage | None = None) -> list[int]:
    """Tokens of the blocks of a response."""
    return [entry.tokens for entry in entries(*answer(*blocks, usage=usage))]


def test_a_block_is_found_by_the_models_and_by_the_tools_that_followed() -> None:
    """Each block has the served and the requested model and the calls after it; a call has its own name."""
    found = entries(
        *answer(
            ThinkingBlock("first"),
            ToolCall("1", "bash", "{}"),
            Text("between"),
            ToolCall("2", "read", "{}"),
            ToolCall("3", "bash", "{}"),
        ),
        Draft("tool_result", ToolResult("1", "done", "bash"), "r"),
        Draft("tool_result", ToolResult("2", "done"), "r"),
    )
    assert [
        ("reasoning", MODELS, ("bash", "read")),
        ("tool_call", MODELS, ("bash",)),
        ("assistant", MODELS, ("read", "bash")),
        ("tool_call", MODELS, ("read",)),
        ("tool_call", MODELS, ("bash",)),
        ("tool_result", (), ("bash",)),
        ("tool_result", (), ()),
    ] == [(entry.kind, entry.models, entry.tools) for entry in found]


def test_an_entry_says_where_its_commit_is() -> None:
    """Arrival, hash, kind, time and response are those of the commit."""
    log = placed(Draft("user", Message("why")), *answer(Text("so")))
    assert [
        IndexEntry(1, log[0].commit.hash, "user", 7, "", "why", tokens=1),
        IndexEntry(3, log[2].commit.hash, "assistant", 7, "r", "so", MODELS, tokens=1),
    ] == read(log).entries


def test_a_model_that_is_not_known_or_known_once_is_named_once() -> None:
    """A served model equal to the requested one, or none, is no second name."""
    for served in ("", "reasoner"):
        header = Response(Origin("openai-chat", "", "reasoner", served))
        (found,) = entries(Draft("response", header, "r"), block_draft(Text("so"), "r", 0))
        assert ("reasoner",) == found.models


def test_a_copy_of_a_response_is_a_response_of_its_own() -> None:
    """What was counted is shared among the blocks of each copy alone."""
    usage = Usage(reasoning=30)
    blocks = answer(ThinkingBlock("a" * 40), usage=usage)
    assert [30, 30] == [entry.tokens for entry in entries(*blocks, *blocks)]


def test_blocks_without_their_response_are_read() -> None:
    """A block that was picked alone has no model, and the calls that were picked with it."""
    found = entries(block_draft(ThinkingBlock("so"), "r", 0), block_draft(ToolCall("1", "bash", ""), "r", 1))
    assert [((), ("bash",)), ((), ("bash",))] == [(entry.models, entry.tools) for entry in found]


def test_reasoning_tokens_are_shared_by_length() -> None:
    """The provider's count of reasoning is divided among the blocks; hidden repetitions have no share."""
    blocks = (ThinkingBlock("a" * 30), ThinkingBlock("b" * 30, is_hidden=True), ThinkingBlock("c" * 10))
    assert [300, 100] == tokens(*blocks, usage=Usage(reasoning=400))


def test_reasoning_that_cannot_be_read_counts_by_its_carriers() -> None:
    """Without text the carriers are what there is to go by."""
    blocks = (ThinkingBlock("", signature="a" * 30), ThinkingBlock("", carriers=(Carrier("encrypted", "b" * 10),)))
    assert [300, 100] == tokens(*blocks, usage=Usage(reasoning=400))
    assert [8, 2] == tokens(*blocks)


@pytest.mark.parametrize(
    ("blocks", "usage", "expected"),
    [
        ((Text("a" * 30), Text("b" * 10)), Usage(output=80), [60, 20]),
        ((Text("a" * 40),), Usage(output=80, reasoning=30, counted=("reasoning_beside_output",)), [80]),
        ((Text("a" * 40),), Usage(output=80, reasoning=30), [10]),
        ((ThinkingBlock("a" * 40), Text("b" * 40)), Usage(output=80), [10, 10]),
        ((Text("a" * 40),), Usage(input=5), [10]),
        ((ToolCall("1", "read", "a" * 36),), Usage(output=20), [20]),
        ((Text("a"),), None, [1]),
        ((ThinkingBlock(""),), Usage(reasoning=40), [0]),
        ((Text("a" * 8), Media("image/png", "AAAA"), Unknown("{}")), Usage(output=4), [4]),
    ],
)
def test_output_tokens_are_used_where_it_is_clear_what_they_count(
    blocks: tuple[Block, ...], usage: Usage | None, expected: list[int]
) -> None:
    """With reasoning inside or nobody knows, characters / 4 is the estimate."""
    assert expected == tokens(*blocks, usage=usage)


def test_an_edit_is_an_entry_of_its_own() -> None:
    """It has the model and the tools of the response it stands in, and takes nothing of what that was counted."""
    first = answer(ThinkingBlock("a" * 40), ToolCall("1", "bash", "{}"), usage=Usage(reasoning=30))
    edited = Draft("reasoning", ThinkingBlock("b" * 8), "r", 0, edit="0" * 64)
    found = [entry for entry in entries(*first, edited) if entry.kind == "reasoning"]
    assert [("a" * 40, ("bash",), 30), ("b" * 8, ("bash",), 2)] == [
        (entry.text, entry.tools, entry.tokens) for entry in found
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Message("hello"), "hello"),
        (Message("", (Media("image/png", "AAAA"),)), None),
        (Text("hi"), "hi"),
        (Text("", carriers=(Carrier("thought_signature", "x"),)), None),
        (ThinkingBlock("hm"), "hm"),
        (ThinkingBlock(""), ""),
        (ThinkingBlock("hm", is_hidden=True), None),
        (ThinkingBlock("Thinking...", marker=True), None),
        (ToolResult("1", "done"), "done"),
        (ToolResult("1", ""), None),
        (Content("note", "remember"), "remember"),
        (Compaction("manual", "what came before"), "what came before"),
        (Compaction("tool_results"), None),
        (BranchSummary("what came of it"), "what came of it"),
        (TurnEnded("completed"), None),
        (Tools(()), None),
        (Media("image/png", "AAAA"), None),
        (Erased("asked for", 1), None),
        (Erased("asked for", 1, canonical.encode(Message("my key is ***")).decode()), "my key is ***"),
        (Erased("asked for", 1, "{"), None),
    ],
)
def test_what_is_read(value: Payload, text: str | None) -> None:
    """Everything that people read is searched for; hidden reasoning is an entry without text."""
    assert text == readable(value)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            '{"command":"ls -la\\ncat x","flags":{"all":true,"deep":[1,null]},"why":"\\ud83d"}',
            "command: ls -la\ncat x\n",
        ),
        ("", ""),
        ('{"broken":', '{"broken":'),
        ('"only text"', "only text"),
        ("[1.5,[]]", "1.5"),
    ],
)
def test_a_call_is_read_by_its_name_and_values(arguments: str, text: str) -> None:
    """Escapes of JSON do not grow together with words; what is no JSON is read as it is."""
    said = readable(ToolCall("1", "bash", arguments))
    assert said is not None
    assert said.startswith(f"bash\n{text}")


def test_the_values_of_a_call_are_in_order() -> None:
    """Each on a line with its name; those of a list have the name of the list."""
    arguments = '{"command":"ls","flags":{"all":true,"deep":[1,null]}}'
    assert "bash\ncommand: ls\nall: true\ndeep: 1\ndeep: null" == readable(ToolCall("1", "bash", arguments))


def test_what_is_left_of_an_erased_call_is_searched_for() -> None:
    """A call whose arguments were redacted is still a call of that tool."""
    rest = canonical.encode(ToolCall("1", "bash", '{"key":"***"}')).decode()
    (found,) = entries(Draft("response", Response(ORIGIN), "r"), Draft("tool_call", Erased("asked", 1, rest), "r", 0))
    assert ("bash\nkey: ***", ("bash",)) == (found.text, found.tools)


def test_what_is_left_of_erased_reasoning_has_its_share_of_the_tokens() -> None:
    """What the provider counted is counted for what is still there."""
    rest = canonical.encode(ThinkingBlock("the key is ***")).decode()
    thought = Draft("reasoning", Erased("asked", 1, rest), "r", 0)
    usage = Draft("provider_usage", Usage(1, 9, 7), "r")
    (found,) = entries(Draft("response", Response(ORIGIN), "r"), thought, usage)
    assert 7 == found.tokens


def test_an_annotation_gives_a_commit_its_priority() -> None:
    """The last one wins, whether it names the commit or follows it; its own priority comes back."""
    user = Draft("user", Message("why"))
    note = Draft("content", Content("note", "mind", priority=Priority.IMPORTANT))
    taken_back = Draft("annotation", Annotation(default=True))
    pinned, skipped = Draft("annotation", PINNED), Draft("annotation", Annotation(priority=Priority.SKIP))
    tagged = Draft("annotation", Annotation(tags=("x",)))
    merged = Draft("merge", Merge("other", "0" * 64))
    for drafts, priority in (
        ((user,), Priority.NORMAL),
        ((note,), Priority.IMPORTANT),
        ((user, pinned), Priority.PINNED),
        ((user, pinned, skipped), Priority.SKIP),
        ((user, pinned, tagged), Priority.PINNED),
        ((user, tagged, merged, pinned), Priority.PINNED),
        ((user, pinned, taken_back), Priority.NORMAL),
        ((note, pinned, taken_back), Priority.IMPORTANT),
    ):
        assert [priority] == [entry.priority for entry in entries(*drafts)]


def test_an_annotation_of_an_earlier_piece_is_handed_on() -> None:
    """What is said of commits that are not in this piece comes back with the hash they have."""
    (_, _, first), *rest = placed(
        Draft("user", Message("why")),
        Draft("annotation", PINNED),
        Draft("annotation", Annotation("f" * 64, default=True)),
        Draft("annotation", Annotation(tags=("x",))),
    )
    assert Reading([], [PriorityChange(2, first.hash, Priority.PINNED), PriorityChange(3, "f" * 64, None)]) == read(
        rest
    )


def test_families_that_hold_the_same_commits_are_read_apart() -> None:
    """What is said in one, and what was counted, is of that one."""
    drafts = (Draft("user", Message("why")), Draft("annotation", PINNED))
    first, second = placed(*drafts), placed(*drafts, family="g", first=3)
    log = [first[0], second[0], first[1]]
    assert [(1, Priority.PINNED), (3, Priority.NORMAL)] == [
        (entry.arrival, entry.priority) for entry in read(log).entries
    ]
    blocks = answer(ThinkingBlock("hm"), usage=Usage(reasoning=9))
    mixed = zip(placed(*blocks), placed(*blocks, family="g", first=4), strict=True)
    assert [9, 9] == [entry.tokens for entry in read(one for pair in mixed for one in pair).entries]


def test_an_annotation_of_nothing_says_nothing() -> None:
    """At the very beginning there is no commit before it."""
    assert Reading([], []) == read(placed(Draft("annotation", PINNED), Draft("annotation", PINNED)))


def test_pieces_that_belong_together_give_what_the_whole_gives() -> None:
    """Cut anywhere but where the next commit belongs to the one before, the entries are the same."""
    log = placed(
        Draft("user", Message("why")),
        Draft("annotation", PINNED),
        *answer(ThinkingBlock("hm"), ToolCall("1", "bash", "{}"), usage=Usage(reasoning=9)),
        Draft("tool_result", ToolResult("1", "done", "bash"), "r"),
        *answer(ThinkingBlock("so"), Text("yes"), id="r2"),
        Draft("turn_ended", TurnEnded("completed")),
    )
    whole = read(log).entries
    commits = [commit for _, _, commit in log]
    pairs = enumerate(pairwise(commits), 1)
    cuts = [at for at, (before, here) in pairs if not belongs_to(before.response, here.kind, here.response)]
    assert [2, 6, 7, 10] == cuts
    for cut in cuts:
        assert whole == read(log[:cut]).entries + read(log[cut:]).entries
    assert whole == read(placed for placed in log if placed.commit.kind not in UNREAD).entries


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("read_file(path)", ["read", "file", "path"]),
        ("Straße CAFÉ cafe\u0301 ﬁne", ["strasse", "cafe", "cafe", "fine"]),
        ("ИЙ é", ["ии", "e"]),
        ("天空为什么是蓝色 ok", ["天", "空", "为", "什", "么", "是", "蓝", "色", "ok"]),
        ("がっこう", ["が", "っ", "こ", "う"]),
        ("हिन्दी", ["हिन्दी"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("a\x00b \ud83d c", ["a", "b", "c"]),
        ("1²", ["12"]),
        ("x" * 100, ["x" * LONGEST_WORD]),
        ("§kreasoning", ["kreasoning"]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    """Letters and digits without case and accents; where a script has no spaces, each character."""
    assert expected == words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sky blue", (("sky",), ("blue",))),
        ('"sky is" blue', (("sky", "is"), ("blue",))),
        ('sky "is blue', (("sky",), ("is", "blue"))),
        ("read_file", (("read", "file"),)),
        ("sky SKY", (("sky",),)),
        ('"" && AND NEAR(*', (("and",), ("near",))),
        ("", ()),
    ],
)
def test_phrases(text: str, expected: tuple[tuple[str, ...], ...]) -> None:
    """Quotes hold words together; operators of any search engine are words."""
    assert expected == phrases(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sky blu", (("sky",), ("blu*",))),
        ("sky bl", (("sky",), ("bl",))),
        ("read_file", (("read", "file*"),)),
        ('sky "is blue', (("sky",), ("is", "blue"))),
        ("blue &&", (("blue",),)),
        ("blu*", (("blu*",),)),
        ("", ()),
    ],
)
def test_the_last_word_of_a_query_may_be_a_beginning(text: str, expected: tuple[tuple[str, ...], ...]) -> None:
    """Where it is long enough and in no quotes; nothing that is typed makes one of another word."""
    assert expected == phrases(text, prefix=True)
    assert not any(word.endswith(PREFIX) for phrase in phrases(text) for word in phrase)


def test_text_without_words_is_hopeless() -> None:
    """Signs alone find nothing; no text at all finds anything."""
    assert (True, False, False) == tuple(is_hopeless(query := Query(text), asked(query)) for text in ("&& -", " ", "a"))


def test_a_phrase_is_whole_words_side_by_side() -> None:
    """Neither parts of words nor words apart fit."""
    said = joined("The sky is blue.")
    assert holds(said, phrases('"SKY is" the'))
    assert not holds(said, phrases('"sky blue"'))
    assert not holds(said, phrases("lue"))
    assert holds(said, ())
    assert holds(said, phrases("the blu", prefix=True))
    assert not holds(said, phrases("lue", prefix=True))


ENTRY = IndexEntry(5, "h", "reasoning", 100, "r", "text", MODELS, ("bash",), 40, Priority.PINNED)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query(), True),
        (Query(kinds=("reasoning", "user")), True),
        (Query(kinds=("user",)), False),
        (Query(model="reasoner"), True),
        (Query(model="other"), False),
        (Query(tool="bash"), True),
        (Query(tool="read"), False),
        (Query(priority=Priority.PINNED), True),
        (Query(priority=Priority.NORMAL), False),
        (Query(since=100, until=101), True),
        (Query(since=101), False),
        (Query(until=100), False),
        (Query(min_tokens=40, max_tokens=40), True),
        (Query(min_tokens=41), False),
        (Query(max_tokens=39), False),
        # a page begins behind a hit in the order of all, which only the store knows
        (Query(before=5), True),
    ],
)
def test_filters(query: Query, expected: bool) -> None:
    """Each filter that is set must hold."""
    assert expected == fits(ENTRY, query)


def test_a_hit_names_the_served_model_and_the_first_tool() -> None:
    """Or neither, where there is none."""
    assert Hit("s", "h", "reasoning", 100, "r", "reasoner-2026-07", "bash", 40, "text", 5) == hit("s", ENTRY, ())
    bare = msgspec.structs.replace(ENTRY, models=(), tools=())
    assert ("", "") == (hit("s", bare, ()).model, hit("s", bare, ()).tool)


def test_a_short_text_is_its_own_excerpt() -> None:
    """On one line."""
    assert "Why is the sky blue?" == excerpt("Why is\n\tthe sky  blue?\n", phrases("sky"))


@pytest.mark.parametrize("place", [0, 150, 500, 880, 990])
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("needle", "needle"),
        ("Nadel_im Heu", '"nadel im heu"'),
        ("Ärger", "other arger"),
        ("蓝色", "蓝色"),
    ],
)
def test_an_excerpt_shows_the_match(text: str, query: str, place: int) -> None:
    """Wherever it stands, it is seen, within the length allowed."""
    hay = ("concatenated needles " * 100)[:place] + f" {text} " + "straw " * 200
    shown = excerpt(hay, phrases(query))
    assert text in shown
    assert len(shown) <= EXCERPT


def test_a_match_inside_a_dense_sentence_is_seen() -> None:
    """Where no spaces are, a part of a run of letters is shown."""
    assert "蓝色" in excerpt("天" * 300 + "蓝色" + "地" * 300, phrases("蓝色"))


def test_a_word_of_which_the_beginning_is_looked_for_is_seen() -> None:
    """Before one that merely has it inside."""
    shown = excerpt("fiberglass " * 40 + "A glassy lens.", phrases("glas", prefix=True))
    assert "A glassy lens." in shown


def test_an_excerpt_without_a_match_is_the_beginning() -> None:
    """And says that there is more."""
    assert "x" * (EXCERPT - 1) + "…" == excerpt("x" * 300, phrases("y"))


@given(st.text(), st.text())
def test_no_text_breaks_anything(text: str, query: str) -> None:
    """Words of words are the same words; an excerpt is never too long; what is read is what is held."""
    assert words(text) == words(" ".join(words(text)))
    assert len(excerpt(text, phrases(query))) <= EXCERPT
    assert holds(joined(text), (tuple(words(text)),) if words(text) else ())
    assert all(words(" ".join(phrase)) == list(phrase) for phrase in phrases(query))
