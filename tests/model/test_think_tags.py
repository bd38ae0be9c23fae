"""The tag splitter: which tags count, and that pieces join to the input at every cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from thinkback.model.code_spans import CodeSpans
from thinkback.model.markdown_code import MarkdownCode, Place
from thinkback.model.think_tags import (
    LONE_CLOSINGS,
    TAGS,
    Edition,
    TagSegment,
    TagSplitter,
    Where,
    outside,
    split_at,
    untagged,
)

LONG = "x" * 4200

HALVES = "O(<think>)R(\ud83d)C(</think>)O(<think>)R(\ude00)C(</think>)"
# name, content, pieces (T text, R reasoning, O opening, C closing, L lone closing)
CASES = [
    ("nothing", "", ""),
    ("plain text", "Hello", "T(Hello)"),
    ("at the start", "<think>a</think>b", "O(<think>)R(a)C(</think>)T(b)"),
    ("white space before", "\n <think>a</think>b", "T(\n )O(<think>)R(a)C(</think>)T(b)"),
    ("white space kept", "<think>\na\n</think>\n\nb", "O(<think>)R(\na\n)C(</think>)T(\n\nb)"),
    ("empty block", "<think>\n\n</think>\n\nb", "O(<think>)R(\n\n)C(</think>)T(\n\nb)"),
    ("nothing inside", "<think></think>b", "O(<think>)C(</think>)T(b)"),
    ("unclosed", "<think>a", "O(<think>)R(a)"),
    ("only the tag", "<think>", "O(<think>)"),
    ("ends in half a closing tag", "<think>a</thi", "O(<think>)R(a</thi)"),
    ("ends in half an opening tag", "<thin", "T(<thin)"),
    ("a lone closing tag", "a</think>b", "T(a)L(</think>)T(b)"),
    ("a lone closing tag first", "</think>b", "L(</think>)T(b)"),
    ("interleaved", "<think>a</think>b<think>c</think>d", "O(<think>)R(a)C(</think>)T(b)O(<think>)R(c)C(</think>)T(d)"),
    ("token by token", "<think>a</think><think>b</think>c", "O(<think>)R(a)I(</think><think>)R(b)C(</think>)T(c)"),
    (
        "in paragraphs",
        "<think>a</think>\n <think>b</think>",
        "O(<think>)R(a)I(</think>)R(\n )I(<think>)R(b)C(</think>)",
    ),
    ("nothing in a token", "<think></think><think></think>", "O(<think>)I(</think><think>)C(</think>)"),
    (
        "another kind behind a thought",
        "<think>a</think> [THINK]b[/THINK]c",
        "O(<think>)R(a)C(</think>)T( )O([THINK])R(b)C([/THINK])T(c)",
    ),
    ("white space last", "<think>a</think>\n\n", "O(<think>)R(a)C(</think>)T(\n\n)"),
    ("half a tag behind a thought", "<think>a</think> <thi", "O(<think>)R(a)C(</think>)T( <thi)"),
    ("no tag behind a thought", "<think>a</think> <b>", "O(<think>)R(a)C(</think>)T( <b>)"),
    ("half a letter", "<think>\ud83d</think><think>\ude00</think>", HALVES),
    (
        "at a line's start, again",
        "<think>a</think>b\n <think>c</think>",
        "O(<think>)R(a)C(</think>)T(b\n )O(<think>)R(c)C(</think>)",
    ),
    (
        "a tag of which the answer speaks",
        "<think>a</think>The <think> tag",
        "O(<think>)R(a)C(</think>)T(The <think> tag)",
    ),
    ("behind a sign", "<think>a</think>x=<think>", "O(<think>)R(a)C(</think>)T(x=<think>)"),
    ("a closing tag of which the answer speaks", "The </think> tag", "T(The </think> tag)"),
    ("a closing tag in quotation marks", 'He "</think>"', 'T(He "</think>")'),
    ("a closing tag behind quotation marks", '"a"</think>b', 'T("a")L(</think>)T(b)'),
    ("a closing tag in a quotation", '"a, </think>"', 'T("a, </think>")'),
    ("a closing tag within a quotation", 'x"a</think>"', 'T(x"a)L(</think>)T(")'),
    ("a closing tag behind white space alone", "a\n     </think>b", "T(a\n     )L(</think>)T(b)"),
    ("a closing tag behind an odd backtick", "a ` b\n</think>c", "T(a ` b\n)L(</think>)T(c)"),
    ("a pair in a span over lines", "a `<think>\n</think>` b", "T(a `<think>\n</think>` b)"),
    ("a closing tag behind a span with an opening one", "`<think>`\n</think>a", "T(`<think>`\n)L(</think>)T(a)"),
    ("in a fence in a quote", "> ```\n> <think>\n> </think>\n> ```\na", "T(> ```\n> <think>\n> </think>\n> ```\na)"),
    ("indented code", "a\n\n    </think>\nb", "T(a\n\n    </think>\nb)"),
    ("kinds mixed", "<think>a</think>b[THINK]c[/THINK]", "O(<think>)R(a)C(</think>)T(b)O([THINK])R(c)C([/THINK])"),
    ("after a lone closing tag", "a</think>b<think>c</think>", "T(a)L(</think>)T(b)O(<think>)R(c)C(</think>)"),
    ("nested openings are text", "<think>a<think>b</think>c", "O(<think>)R(a<think>b)C(</think>)T(c)"),
    ("another kind inside", "<think>a</thinking>b</think>", "O(<think>)R(a</thinking>b)C(</think>)"),
    ("a second closing tag is text", "<think>a</think>b</think>c", "O(<think>)R(a)C(</think>)T(b</think>c)"),
    ("after answer text", "Say <think>a</think>b", "T(Say <think>a</think>b)"),
    (
        "a pair in the answer, then a lone one",
        "<b><think>a</think>b</think>c",
        "T(<b><think>a</think>b)L(</think>)T(c)",
    ),
    ("upper case", "<THINK>a</THINK>b", "O(<THINK>)R(a)C(</THINK>)T(b)"),
    ("cases mixed", "<Think>a</tHINK>b[think]c[/Think]", "O(<Think>)R(a)C(</tHINK>)T(b)O([think])R(c)C([/Think])"),
    ("a lone closing tag in upper case", "a</THINK>b", "T(a)L(</THINK>)T(b)"),
    ("upper case with attributes", '<THINK a="B">c</think>', 'O(<THINK a="B">)R(c)C(</think>)'),
    ("a letter that is another's upper case", "<thin\u212a>a", "T(<thin\u212a>a)"),
    ("upper case in the answer", "a<THINK>b</think>c", "T(a<THINK>b</think>c)"),
    ("in a code span", "Use `<think>` and `</think>`.", "T(Use `<think>` and `</think>`.)"),
    ("in a fence", "a\n```xml\n<think>\n</think>\n```\nb", "T(a\n```xml\n<think>\n</think>\n```\nb)"),
    ("after a fence", "```\nx\n```\ny</think>z", "T(```\nx\n```\ny)L(</think>)T(z)"),
    ("code after a block", "<think>a</think>`<think>`b", "O(<think>)R(a)C(</think>)T(`<think>`b)"),
    ("a fence inside reasoning", "<think>```\na</think>b", "O(<think>)R(```\na)C(</think>)T(b)"),
    ("attributes", '<think signature="a/b==">c</think>d', 'O(<think signature="a/b==">)R(c)C(</think>)T(d)'),
    ("attributes without quotes", "<thinking duration=3>c</thinking>", "O(<thinking duration=3>)R(c)C(</thinking>)"),
    ("attributes in the answer", "a<think x=1>b</think>c", "T(a<think x=1>b</think>c)"),
    ("words are no attributes", "<think about it>c", "T(<think about it>c)"),
    ("attributes without an end", "<think a=b", "T(<think a=b)"),
    ("attributes too long", f"<think a={LONG}>c", f"T(<think a={LONG}>c)"),
    ("harmony", "<|channel|>analysis<|message|>a<|end|>b", "O(<|channel|>analysis<|message|>)R(a)C(<|end|>)T(b)"),
    ("half of harmony", "<|channel|>analysis<think>", "T(<|channel|>analysis<think>)"),
    ("a lone harmony end is text", "a<|end|>b", "T(a<|end|>b)"),
    ("a doubled bracket", "<<think>a", "T(<<think>a)"),
    ("a bracket in reasoning", "<think>a < b</think>", "O(<think>)R(a < b)C(</think>)"),
]
# As above, where tags count anywhere in an answer.
ANYWHERE = [
    ("in the middle", "Hello <think>x</think> world", "T(Hello )O(<think>)R(x)C(</think>)T( world)"),
    ("unclosed at the end", "Answer. <think>one two and", "T(Answer. )O(<think>)R(one two and)"),
    ("at the start", "<think>a</think>b", "O(<think>)R(a)C(</think>)T(b)"),
    ("twice", "a<THINK>b</think>c[think]d[/THINK]", "T(a)O(<THINK>)R(b)C(</think>)T(c)O([think])R(d)C([/THINK])"),
    ("in a code span", "Use `<think>` and `</think>`.", "T(Use `<think>` and `</think>`.)"),
    ("in a fence", "a\n```xml\n<think>\n</think>\n```\nb", "T(a\n```xml\n<think>\n</think>\n```\nb)"),
    ("behind a span", "`a` <think>b</think>", "T(`a` )O(<think>)R(b)C(</think>)"),
    ("in quotation marks", 'He wrote "<think>" literally', 'T(He wrote "<think>" literally)'),
    ("a lone closing tag", "a</think>b", "T(a)L(</think>)T(b)"),
    ("a lone closing tag behind white space", "a </think>b", "T(a )L(</think>)T(b)"),
    ("a second closing tag is text", "x<think>a</think>b</think>c", "T(x)O(<think>)R(a)C(</think>)T(b</think>c)"),
]
# As above, where tags count at the start of a line too.
LINES = [
    ("within a line", "Hello <think>x</think> world", "T(Hello <think>x</think> world)"),
    ("in quotation marks", 'He wrote "<think>" literally', 'T(He wrote "<think>" literally)'),
    ("at a line's start", "Hi\n<think>x</think>\ny", "T(Hi\n)O(<think>)R(x)C(</think>)T(\ny)"),
    ("behind three spaces", "Hi\n   <think>x", "T(Hi\n   )O(<think>)R(x)"),
    ("behind four", "Hi\n    <think>x</think>", "T(Hi\n    <think>x</think>)"),
    ("in a list", "Hi\n- <think>x</think>", "T(Hi\n- <think>x</think>)"),
    ("behind a word", "Hi<think>x</think>", "T(Hi<think>x</think>)"),
]
# As above, where no tag is read.
OFF = [
    ("a pair", "<think>a</think>b", "T(<think>a</think>b)"),
    ("a lone closing tag", "a</think>b", "T(a</think>b)"),
    ("half a tag", "<thi", "T(<thi)"),
]
CHOICES: list[tuple[Where, list[tuple[str, str, str]]]] = [("anywhere", ANYWHERE), ("lines", LINES), ("off", OFF)]
KINDS = {"text": "T", "reasoning": "R", "open": "O", "inner": "I", "close": "C", "lone_close": "L"}


def split(pieces: list[str], where: Where = "start", *, edition: Edition = 3, passing: bool = False) -> str:
    """The pieces of a text in cuts, equal neighbours joined, as one string; ``passing``: what may pass does so."""
    splitter = TagSplitter(where, edition=edition)
    found: list[list[str]] = []
    given: list[TagSegment] = []
    for cut in filter(None, pieces):
        flows = passing and splitter.flows and not splitter.doubtful([cut])
        given += [TagSegment("text", splitter.go_by([cut]))] if flows else splitter.feed(cut)
    for piece in given + splitter.close():
        assert piece.text
        if found and found[-1][0] == piece.kind and piece.kind in ("text", "reasoning"):
            found[-1][1] += piece.text
        else:
            found.append([piece.kind, piece.text])
    return "".join(f"{KINDS[kind]}({text})" for kind, text in found)


@pytest.mark.parametrize(("name", "content", "expected"), CASES, ids=[case[0] for case in CASES])
def test_content_is_split_by_the_rules_at_every_cut(name: str, content: str, expected: str) -> None:
    """Each content gives its pieces whole, by character, and cut once at any place."""
    assert expected == split([content])
    assert expected == split(list(content))
    assert expected == split(list(content), passing=True)
    for at in range(min(len(content), 60)):
        assert expected == split([content[:at], content[at:]])
        assert expected == split([content[:at], content[at:]], passing=True)


@pytest.mark.parametrize("tag", sorted({tag for pair in TAGS for tag in pair}))
def test_what_may_be_held_back_is_in_doubt(tag: str) -> None:
    """A tag, and each text that ends as one begins, in either case; what is beside them in time is not."""
    for length in range(1, len(tag)):
        for begins in (tag[:length], tag[:length].swapcase()):
            assert [1] == TagSplitter().doubtful(["a", f"b{begins}", "c"])
    assert [0, 2] == TagSplitter().doubtful([tag, "]x[ <>", f"a{tag}b"])
    assert [0, 1] == TagSplitter().doubtful([f"{tag[:1]}\0", "a"])


@pytest.mark.parametrize(
    ("where", "content", "expected"),
    [(where, *case[1:]) for where, cases in CHOICES for case in cases],
    ids=[f"{where}, {case[0]}" for where, cases in CHOICES for case in cases],
)
def test_where_tags_count_is_a_choice(where: Where, content: str, expected: str) -> None:
    """Anywhere outside code, at the start of lines, or nowhere; equal whole, by character, and cut once anywhere."""
    assert expected == split([content], where)
    assert expected == split(list(content), where)
    for at in range(len(content)):
        assert expected == split([content[:at], content[at:]], where)


# name, setting, content, pieces by the rules of the second edition, and of the first if they are others
EARLIER: list[tuple[str, Where, str, str, str]] = [
    ("upper case", "start", "<THINK>a</THINK>b", "O(<THINK>)R(a)C(</THINK>)T(b)", "T(<THINK>a</THINK>b)"),
    ("cases mixed", "start", "<think>a</THINK>b", "O(<think>)R(a)C(</THINK>)T(b)", "O(<think>)R(a</THINK>b)"),
    ("quotation marks", "anywhere", 'He wrote "<think>" so', 'T(He wrote ")O(<think>)R(" so)', ""),
    ("token by token", "start", "<think>a</think><think>b", "O(<think>)R(a)C(</think>)O(<think>)R(b)", ""),
    ("a fence in a quote", "start", "> ```\n> </think>", "T(> ```\n> )L(</think>)", ""),
    ("a pair in the answer", "start", "a <think>b</think></think>c", "T(a <think>b</think>)L(</think>)T(c)", ""),
    ("a span", "anywhere", "`<think>`<think>", "T(`<think>`)O(<think>)", ""),
]


@pytest.mark.parametrize(
    ("where", "content", "second", "first"), [case[1:] for case in EARLIER], ids=[case[0] for case in EARLIER]
)
def test_earlier_editions_of_the_rules_read_as_they_did(where: Where, content: str, second: str, first: str) -> None:
    """By them the visible text of what was recorded then is found; equal whole and by character."""
    assert (first or second) == split([content], where, edition=1) == split(list(content), where, edition=1)
    assert second == split([content], where, edition=2) == split(list(content), where, edition=2)


def test_a_text_without_its_reasoning_depends_on_where_tags_count() -> None:
    """As it is shown, and as it is recorded: read until no tag is left."""
    assert ("<THINK>a</THINK>b", "b") == (untagged("<THINK>a</THINK>b", edition=1), untagged("<THINK>a</THINK>b"))
    text = "x <think>a</think>b\n<think>c</think>"
    assert (text, "x <think>a</think>b\n", "x b\n") == tuple(outside(text, where) for where in _PLACES)
    assert "a</think>b" == outside("<think>x</think>a</think>b", "start")
    assert "b" == untagged("<think>x</think></think>b")
    assert "a <think>b" == untagged("a <think>b")


def test_a_thought_goes_on_if_nothing_else_comes_between() -> None:
    """If something else than text comes, what is held back is released, and the next thought is another."""
    splitter = TagSplitter()
    pieces = [piece for text in ("<think>a</think>", "\n") for piece in splitter.feed(text)]
    held = splitter.end_thought()
    rest = [*splitter.end_thought(), *splitter.feed(""), *splitter.feed("<think>b</think>"), *splitter.close()]

    assert ["open", "reasoning"] == [piece.kind for piece in pieces]
    assert [("close", "</think>"), ("text", "\n")] == [(piece.kind, piece.text) for piece in held]
    assert ["open", "reasoning", "close"] == [piece.kind for piece in rest]


_PLACES: tuple[Where, ...] = ("start", "lines", "anywhere")


@pytest.mark.parametrize(("opening", "closing"), TAGS, ids=[opening for opening, _ in TAGS])
def test_every_pair_of_tags_is_known(opening: str, closing: str) -> None:
    """Each delimiter of the table is found, at the start and after a first block, by character too."""
    text = f"{opening}a{closing}b{opening}c"
    expected = f"O({opening})R(a)C({closing})T(b)O({opening})R(c)"

    assert expected == split([text]) == split(list(text))


@pytest.mark.parametrize("closing", LONE_CLOSINGS)
def test_every_closing_tag_may_stand_alone(closing: str) -> None:
    """A closing tag that was never opened is found by itself, but not inside code."""
    assert f"T(a)L({closing})T(b)" == split([f"a{closing}b"]) == split(list(f"a{closing}b"))
    assert f"T(a `{closing}` b)" == split([f"a `{closing}` b"])


MARKS = [tag for pair in TAGS[:9] for tag in pair] + [
    "<THINK>",
    "</Think>",
    "<",
    "</",
    "think",
    ">",
    "`",
    "``",
    "```",
    "~~~",
    "\n",
    " ",
    "a",
    "[",
    "=",
]
CONTENTS = st.lists(st.sampled_from(MARKS), max_size=12).map("".join)
WHERE: st.SearchStrategy[Where] = st.sampled_from(["start", "lines", "anywhere", "off"])
EDITIONS: st.SearchStrategy[Edition] = st.sampled_from([1, 2, 3])
CUTS = st.lists(st.integers(0, 80), max_size=4)


def cut(content: str, at: list[int]) -> list[str]:
    """``content`` in pieces."""
    places = [0, *sorted(min(place, len(content)) for place in at), len(content)]
    return [content[start:end] for start, end in itertools.pairwise(places)]


@given(CONTENTS, CUTS, WHERE, EDITIONS)
@example("`` `<think>", [], "start", 3)
def test_pieces_join_to_the_input_and_cuts_do_not_matter(
    content: str, at: list[int], where: Where, edition: Edition
) -> None:
    """For tags and code strewn anyhow: the pieces are the input again, equal at every cut."""
    pieces = cut(content, at)
    splitter = TagSplitter(where, edition=edition)
    joined = "".join(piece.text for cut in pieces for piece in splitter.feed(cut))

    assert content == joined + "".join(piece.text for piece in splitter.close())
    expected = split([content], where, edition=edition)
    for cuts in (list(content), pieces):
        assert expected == split(cuts, where, edition=edition) == split(cuts, where, edition=edition, passing=True)


SPEAKING = [
    *(
        "The <think> tag opens, </think> closes.",
        "- <think>: opens\n- </think>: closes",
        "| tag | <think> |\n| --- | </think> |",
        "> <think>\n> </think>\n> said a model",
        "so it is\n    <think>\n",
    )
]
QUOTING = [
    *(
        'He wrote "<think>" literally, and "</think>" too.',
        "\u201c<think>\u201d and (<think>) and **</think>** and \u300c</think>\u300d",
        '"</think>" alone',
        "It is '<think>', not x=<THINK>.",
        "Use `<think>` and ``</think>``.",
        "Use `<think>\n<think>\n</think>` over lines.",
        "```xml\n<think>\n</think>\n```",
        "~~~\n<think>\n\n```\n</think>\n~~~~",
        "> ```\n> <think>\n>\n> </think>\n> ```",
        "> - ```\n>   <think>\n>   </think>\n>   ```",
        "1. ```\n   <think>\n   </think>\n   ```",
        "So:\n\n    <think>\n\n    </think>\n\nand\n\n\t</think>",
    )
]


@given(
    st.sampled_from(["start", "lines", "anywhere"]),
    st.lists(st.sampled_from(QUOTING + SPEAKING), min_size=1, max_size=4),
    st.booleans(),
    st.lists(st.integers(0, 300), max_size=5),
)
def test_tags_of_which_an_answer_speaks_cut_nothing_from_it(
    where: Where, paragraphs: list[str], thinks: bool, at: list[int]
) -> None:
    """Quoted in prose or code, at any cut, with a thought before or without; said plainly, too, if not ``anywhere``."""
    assume(where != "anywhere" or not any(each in paragraphs for each in SPEAKING))
    answer = "\n\n".join(("Well.", *paragraphs))
    thought = "<think>why</think>" if thinks else ""
    expected = f"{'O(<think>)R(why)C(</think>)' * thinks}T({answer})"

    assert expected == split([thought + answer], where)
    assert expected == split(cut(thought + answer, at), where)
    assert expected == split(list(thought + answer), where)


@given(CONTENTS)
def test_reasoning_is_released_as_it_arrives(content: str) -> None:
    """After each piece at most an unfinished tag is held back, and behind a closing tag it and white space."""
    splitter, released = TagSplitter(), 0
    for at, character in enumerate(content):
        released += sum(len(piece.text) for piece in splitter.feed(character))
        held = content[released : at + 1]
        for tag in CLOSINGS:
            if held.lower().startswith(tag):
                held = held[len(tag) :].lstrip()

        assert (
            not held
            or any(tag.lower().startswith(held.lower()) for pair in TAGS for tag in pair)
            or held.startswith("<think")
        )


CLOSINGS = [closing.lower() for _, closing in TAGS]
CODE = [
    ("", False),
    ("a", False),
    ("`a", True),
    ("`a`", False),
    ("``a`", True),
    ("``a` b``", False),
    ("`a\n", False),
    ("```\n", True),
    ("```py", True),
    ("```py\na", True),
    ("```\na\n```\n", False),
    ("```\na\n``` b\n", True),
    ("```\na\n``\n", True),
    ("````\na\n```\n", True),
    ("````\na\n`````\n", False),
    ("~~~\na\n```\n", True),
    ("~~~\na\n~~~\n", False),
    ("~~~\na`b\n", True),
    ("~a~", False),
    ("a ```b", True),
    ("a ```\n", False),
    ("```a``` b", False),
    ("```a` b", True),
    ("  ```\na\n  ```\n", False),
    ("`~", True),
    ("~`", True),
    ("```~~~\n", True),
]


@pytest.mark.parametrize(("text", "expected"), CODE)
def test_code_spans_and_fences_of_an_answer(text: str, expected: bool) -> None:
    """What follows the text is inside code or not, noted whole or by character, asked once or twice."""
    whole, pieces = CodeSpans(), CodeSpans()
    whole.note(text)
    for character in text:
        pieces.note(character)

    assert expected == whole.inside() == whole.inside() == pieces.inside()


# Text of Markdown, if what follows is code by it, and where on its line that stands.
MARKDOWN: list[tuple[str, bool, Place]] = [
    ("", False, "line"),
    ("a\n   ", False, "line"),
    ("a\n    ", False, "indented"),
    ("a\n\n    ", True, "indented"),
    ("a\n\n    b\n\n    ", True, "indented"),
    ("a\n\n    b\nc\n    ", False, "indented"),
    ("a\n\n\tb `c` ", True, "apart"),
    ("- a\n\n    ", False, "indented"),
    ("- a\n\n  b\n\n    ", False, "indented"),
    ("- a\n\nb\n\n    ", True, "indented"),
    ("- a\nb\n    ", False, "indented"),
    ("> a\n>\n>     ", True, "apart"),
    (">  a `b\n>c", True, "touching"),
    ("a", False, "touching"),
    ("12.5 a ", False, "apart"),
    ("a `b\nc", True, "touching"),
    ("a `b\n\nc", False, "touching"),
    ("a `b\n- c", False, "touching"),
    ("> a `b\n> c", True, "touching"),
    ("> a `b\nc", False, "touching"),
    ("a `b\n# c", False, "touching"),
    ("a \\` b ", False, "apart"),
    ("a \\`` b ", True, "apart"),
    ("`a\\` b ", False, "apart"),
    ("``a` b`` c ", False, "apart"),
    ("``a` b ", True, "apart"),
    ("```py a ", True, "apart"),
    ("```a``` b ", False, "apart"),
    ("```a` b ", True, "apart"),
    ("~~~a` b\n", True, "line"),
    ("```\na `\n```\n", False, "line"),
    ("```\n``\n", True, "line"),
    ("```\n``` b\n", True, "line"),
    ("```\n```` \n", False, "line"),
    ("```\n> ```\n", True, "line"),
    ("a `b\n```\n", True, "line"),
    ("> ```\n> a\n> ", True, "apart"),
    ("> ```\n> ```\n", False, "line"),
    ("> ```\na\n", False, "line"),
    ("> ```\n\n", False, "line"),
    ("- ```\n  a\n  ```\n", False, "line"),
    ("1) ~~~\n", True, "line"),
    ("---\n***\n", False, "line"),
    ('a "', False, "quoted"),
    ('a "b" ("', False, "quoted"),
    ('"a"', False, "touching"),
    ('"a, b', False, "touching"),
    ('"a, b "', False, "quoted"),
    ('"a, b"c"', False, "quoted"),
    ("it's '", False, "quoted"),
    ("it's'", False, "touching"),
    ("**", False, "quoted"),
    ("a=", False, "quoted"),
    ("\u8bf4\u201c", False, "quoted"),
    ("a" * 50, False, "touching"),
]


@pytest.mark.parametrize(("text", "inside", "place"), MARKDOWN)
def test_code_of_markdown_and_the_place_on_a_line(text: str, inside: bool, place: Place) -> None:
    """What follows the text is inside code or not, noted whole or by character, asked once or twice."""
    whole, pieces = MarkdownCode(), MarkdownCode()
    whole.note(text)
    for character in text:
        pieces.note(character)

    assert (inside, place) == (whole.inside(), whole.place()) == (whole.inside(), whole.place())
    assert (place, inside, text.rpartition("\n")[2][-1:]) == (pieces.place(), pieces.inside(), pieces.last)
    assert inside == (pieces.inside_block() or pieces.inside_span())


@given(CONTENTS, CONTENTS)
@example("- ", "b")
def test_code_of_markdown_is_known_the_same_whether_it_was_asked_before(before: str, after: str) -> None:
    """Asking where a tag stands changes nothing."""
    asked, fresh = MarkdownCode(), MarkdownCode()
    for code in (asked, fresh):
        code.note(before)
        if code is asked:
            code.inside()
        code.note("<think>")
        code.note(after)

    assert (asked.inside(), asked.place()) == (fresh.inside(), fresh.place())


@given(CONTENTS, CONTENTS)
def test_code_is_known_the_same_whether_it_was_asked_before(before: str, after: str) -> None:
    """Asking in between, where no run of backticks is cut, changes nothing."""
    asked, fresh = CodeSpans(), CodeSpans()
    for spans in (asked, fresh):
        spans.note(before + "a")
        if spans is asked:
            spans.inside()
        spans.note(after)

    assert asked.inside() == fresh.inside()


def test_the_place_of_a_mark_or_of_its_beginning() -> None:
    """A mark is found; without one, the place from which it may still come is named."""
    assert (1, 1) == split_at("a<b>", 0, "<b>")
    assert (-1, 2) == split_at("aa<b", 1, "<b>")
    assert (-1, 3) == split_at("a<c", 0, "<b>")


@pytest.mark.parametrize("opening", ["", "[", "◁", "[/THINK"])
def test_the_beginning_of_a_tag_among_attributes_is_no_tag(opening: str) -> None:
    """What an attribute holds does not end the tag that is held back, wherever the text is cut."""
    text = f'so <think a="{opening}">why</think>'
    splitter = TagSplitter()
    pieces = [piece for one in text for piece in splitter.feed(one)] + splitter.close()

    assert {"text"} == {piece.kind for piece in pieces}
    assert text == "".join(piece.text for piece in pieces)
