"""The formats of agents' files: one key at a time is changed, and everything else stays byte for byte."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from thinkback.cli.connect.documents import FORMATS, Change, applied, diff, masked, taken_back, unmet
from thinkback.cli.connect.source import Damaged

ROOT = "http://127.0.0.1:8484"
CHANGES = {
    "jsonc": [
        Change(("env", "ANTHROPIC_BASE_URL"), ROOT),
        Change(("model",), "fast"),
        Change(("providers", "thinkback", "models"), [{"id": "fast", "reasoning": True}]),
        Change(("providers", "thinkback", "baseUrl"), ROOT),
    ],
    "toml": [
        Change(("model_provider",), "thinkback"),
        Change(("model",), 'a "quoted" alias'),
        Change(("model_providers", "thinkback", "name"), "thinkback"),
        Change(("model_providers", "thinkback", "base_url"), ROOT),
    ],
    "yaml": [Change(("openai-api-base",), ROOT), Change(("model",), "openai/fast")],
    "dotenv": [Change(("OPENAI_API_BASE",), ROOT), Change(("MODEL",), "fast")],
}


def names() -> st.SearchStrategy[str]:
    """Keys, some of which are those that are changed."""
    return st.sampled_from(["model", "env", "providers", "model_provider", "a", "b c", "openai-api-base", "é", "x.y"])


@st.composite
def jsonc(draw: st.DrawFn) -> str:
    """An object with comments, trailing commas, and lines or none."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    unit = draw(st.sampled_from(["  ", "\t", "    "]))
    comments = st.sampled_from(["", "", "", " // no, {really}", " /* a */", ' // "model": 1,'])

    def value(depth: int, *, is_split: bool) -> str:
        kinds = ["text", "number", "list"] + (["object"] * 3 if depth < 3 else [])
        match draw(st.sampled_from(kinds)):
            case "text":
                return json.dumps(draw(st.text(max_size=4)), ensure_ascii=draw(st.booleans()))
            case "number":
                return draw(st.sampled_from(["1", "-0.5e3", "true", "null"]))
            case "list":
                return draw(
                    st.sampled_from(["[]", "[1, 2 ]", '["}", // ]' + newline + "]"]) if is_split else st.just("[{}]")
                )
        return an_object(depth, is_split=is_split)

    def an_object(depth: int, *, is_split: bool) -> str:
        keys = draw(st.lists(names(), max_size=4, unique=True))
        if not keys:
            return "{" + newline + unit * depth + "}" if is_split else '{"z":0}'
        split = is_split and draw(st.booleans())
        pieces = []
        for at, key in enumerate(keys):
            known = CHANGES["jsonc"]
            inner = '"old"'
            if (key,) not in {change.path for change in known}:
                is_way = any(change.path[depth : depth + 1] == (key,) for change in known)
                inner = an_object(depth + 1, is_split=split) if is_way else value(depth + 1, is_split=split)
            comma = "," if at < len(keys) - 1 or draw(st.booleans()) else ""
            comment = draw(comments) if split else ""
            lead = newline + unit * (depth + 1) if split else " " if at else ""
            pieces.append(f"{lead}{json.dumps(key, ensure_ascii=False)}: {inner}{comma}{comment}")
        return "{" + "".join(pieces) + (newline + unit * depth if split else "") + "}"

    head = draw(st.sampled_from(["", f"// first{newline}", f"{newline}{newline}"]))
    return head + an_object(0, is_split=True) + draw(st.sampled_from(["", newline, f"{newline}// last"]))


@st.composite
def toml(draw: st.DrawFn) -> str:
    """Tables, dotted keys, arrays of tables between them, texts over lines, comments."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    values = st.sampled_from(
        [
            "1",
            "'it''s'"[:4] + "'",
            '"# no comment"',
            '"""\n[no.table]\na = "b"\n"""',
            "'''\n'quoted'''''",
            "[\n 1, # ]\n 2,\n]",
            "{ a = { b = [1] } }",
            "1979-05-27T07:32:00Z",
        ]
    )
    comment = st.sampled_from(["", "", " # [model]", "  # it's"])

    def keys(taken: list[str], most: int = 3) -> str:
        chosen = draw(st.lists(st.sampled_from(taken), max_size=most, unique=True))
        return "".join(
            f"{draw(st.sampled_from(['', '  ', '# note' + newline]))}{key} = {draw(values)}{draw(comment)}{newline}"
            for key in chosen
        )

    tables = [
        ("[model_providers.mine]", ["name", '"base url"', "query.a", "query.b"]),
        ("[[hooks]]", ["x", "y.z"]),
        ("[hooks.inner]", ["model"]),
        ("[profiles . 'fast']", ["model", "model_provider"]),
        ("[[hooks]]", ["x"]),
        ("[model_providers]", ["other.name", "other.base_url"]),
        ("[mcp_servers.docs]", ["command", "args"]),
    ]
    text = keys(["model", "approval", "tui.theme", '"odd key"', "model_provider"])
    for header, taken in (table for table in tables if draw(st.booleans())):
        text += draw(st.sampled_from(["", newline, f"{newline}# about{newline}"])) + header + draw(comment) + newline
        text += keys(taken)
    ending = draw(st.sampled_from(["", newline]))
    text = (text.removesuffix(newline) + ending).replace("\r\n", "\n").replace("\n", newline)
    # what the tables above make of one another may be no TOML
    try:
        FORMATS["toml"].read(text)
    except Damaged:
        assume(False)
    return text


@st.composite
def yaml(draw: st.DrawFn) -> str:
    """A flat mapping with lists and blocks under some keys."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines = [
        "# model: none",
        "dark-mode: true",
        "model: gpt-4o # fast",
        "read:\n  - a.md\n  # model: b\n  - 'c: d'",
        "",
        "lint-cmd: |\n  x\n\n  model: y",
        "model: 'it''s'",
        'openai-api-base: "http://a#b"',
        "alias: [a,\n  b]",
        "openai-api-base: http://x/#y  # z",
        "weak: ",
    ]
    chosen = draw(st.lists(st.sampled_from(lines), max_size=6, unique_by=lambda line: line.partition(":")[0]))
    return newline.join(chosen).replace("\r\n", "\n").replace("\n", newline) + draw(st.sampled_from(["", newline]))


@st.composite
def dotenv(draw: st.DrawFn) -> str:
    """Variables, quoted over lines or bare, comments, and lines that are none."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    lines = [
        "# MODEL=x",
        "A=1",
        "export MODEL='a b' # c",
        'OPENAI_API_BASE="http://a"',
        "B=`x\nMODEL=y`",
        "",
        "no variable",
        "MODEL = c#d # e",
    ]
    chosen = draw(
        st.lists(
            st.sampled_from(lines), max_size=6, unique_by=lambda line: line.partition("=")[0].split(" ")[-1] or line
        )
    )
    chosen = chosen if sum("MODEL" in line.partition("=")[0] and line[0] != "#" for line in chosen) < 2 else chosen[:1]
    return newline.join(chosen).replace("\r\n", "\n").replace("\n", newline) + draw(st.sampled_from(["", newline]))


DOCUMENTS = st.one_of(
    *(
        st.tuples(st.just(name), made())
        for name, made in {"jsonc": jsonc, "toml": toml, "yaml": yaml, "dotenv": dotenv}.items()
    )
)


def is_spread(part: str, whole: str) -> bool:
    """Whether the characters of ``part`` stand in ``whole`` in their order."""
    rest = iter(whole)
    return all(character in rest for character in part)


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS)
@example(("toml", "a.b = 1\nmodel_providers.mine.name = 'x'"))
@example(("toml", "[model_providers.mine]\nname = 'x'\n\n[model_providers]\n"))
def test_what_is_written_is_ours_and_is_taken_back_to_the_byte(document: tuple[str, str]) -> None:
    """Our values are there, nothing else is lost, a second time changes nothing, and back means the same bytes."""
    name, text = document
    format, changes = FORMATS[name], CHANGES[name]
    wanted = unmet(format, text, changes)
    after = applied(format, text, changes)
    assert [] == unmet(format, after, changes)
    assert after == applied(format, after, changes)
    replaced = {change.path for change in wanted if format.span(text, change.path)}
    if not replaced:
        assert is_spread(text, after)
    back = taken_back(format, after, text, wanted)
    assert (text, ()) == back


def test_a_comment_that_was_put_among_our_lines_stays() -> None:
    """The object around it stays with it, though it is empty."""
    changes = [Change(("env", "A"), "1"), Change(("env", "B"), "2")]
    after = applied(FORMATS["jsonc"], "{}", changes).replace('"1",', '"1", // mine')
    assert "// mine" in taken_back(FORMATS["jsonc"], after, "{}", changes).text


@pytest.mark.parametrize(
    "line",
    [
        '"Authorization": "Bearer SECRET-0123456789"',
        "api-key: [gemini=SECRET-0123456789]",
        "  - gemini=sk-SECRET-0123456789abc",
        'base_url = "https://me:SECRET@host/v1"',
        "export OPENAI_API_KEY='SECRET-0123456789'",
        'env = { GITHUB_TOKEN = "SECRET-0123456789" }',
    ],
)
def test_no_secret_of_the_file_is_in_a_diff(line: str) -> None:
    """Neither in a line that goes nor beside one; what is no secret is shown."""
    shown = "\n".join(diff("file", f"{line}\nmodel: gpt-6-2026-01-01\n", "model: gpt-6-2026-01-01\n"))
    assert "SECRET" not in shown
    assert "gpt-6-2026-01-01" in shown


@pytest.mark.parametrize(
    "piece",
    ["a", "key", "key.", "key-:", "key= ", 'key="', "key='\\\"", "key=[", "token ", "://a:", "sk-", "eyJ.", "\\"],
)
def test_a_long_line_is_masked_in_the_time_of_its_length(piece: str) -> None:
    """20,000 characters of anything: a minified file has such lines."""
    line = (piece * 20_000)[:20_000]
    began = time.process_time()
    masked(line)
    assert time.process_time() - began < 0.3


def test_a_secret_inside_of_another_value_is_masked() -> None:
    """A name for no secret hides nothing of what stands in its value."""
    assert "SECRET" not in masked('args = "--token=SECRET-0123456789 --x"')
    assert 'note = "monkey business"' == masked('note = "monkey business"')


def test_a_block_at_the_end_of_a_yaml_file_gets_no_line_end() -> None:
    """Ours stand before it: behind it they would change what it says."""
    text = "read: a\nlint-cmd: |\n  x"
    after = applied(FORMATS["yaml"], text, [Change(("model",), "fast")])
    assert 'read: a\nmodel: "fast"\nlint-cmd: |\n  x' == after


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [("yaml", "model: # x\n", 'model:  "m" # x\n'), ("dotenv", "MODEL= # x", "MODEL= m # x")],
)
def test_a_comment_behind_nothing_stays_one(name: str, text: str, wanted: str) -> None:
    """A value that is put before it is parted from it."""
    key = text.split(":")[0].split("=")[0]
    assert wanted == applied(FORMATS[name], text, [Change((key,), "m")])


def test_a_list_at_the_margin_belongs_to_the_key_above_it() -> None:
    """YAML lets its items stand as far left as the key."""
    text = "read:\n- a.md\n# more\n- b.md\n\nmodel: gpt-6\nalias: # none\n- x"
    after = applied(FORMATS["yaml"], text, [Change(("model",), "fast"), Change(("weak-model",), "fast")])
    assert 'read:\n- a.md\n# more\n- b.md\n\nmodel: "fast"\nweak-model: "fast"\nalias: # none\n- x' == after


@pytest.mark.parametrize(
    "text", ['note: "a\nmodel: b"', "note: 'a\nmodel: b'", "alias: {a: b,\nmodel: c}", "alias: [a, # ]\nmodel: c]"]
)
def test_a_value_that_goes_on_at_the_margin_is_no_key(text: str) -> None:
    """What looks like a key there is inside of the value; nothing of it is changed."""
    with pytest.raises(Damaged, match=r"line 2: the value of .* goes on here"):
        applied(FORMATS["yaml"], text, [Change(("model",), "fast")])


@pytest.mark.parametrize("text", ["- a", "model: x\n- a", "read: |\n  x\n- a"])
def test_a_list_without_its_key_is_refused(text: str) -> None:
    """It is no YAML, or no configuration of aider."""
    with pytest.raises(Damaged, match="a key and a colon are expected"):
        applied(FORMATS["yaml"], text, [Change(("model",), "fast")])
