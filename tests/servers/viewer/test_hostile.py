"""What a model, a tool or a program wrote is shown as characters: none of it is markup, an address or a script."""

from __future__ import annotations

import json
import re
import time
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import thinkback
from scripts.hostile import HOSTILE
from tests.servers.viewer.conversations import Page, answered, asked
from thinkback.log.protocol import About
from thinkback.model.blocks import Media, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.servers.viewer import code, text
from thinkback.servers.viewer.app import application
from thinkback.session.store import SessionStore

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\U000e0041]"
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_characters_wherever_it_stands(name: str) -> None:
    """As question, thought, answer, call, result, title, program, project, tag, branch, and as what is searched for."""
    evil = HOSTILE[name]
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        info = asked(store, "evil", evil)
        calls = (
            ToolCall("c1", evil, evil),
            ToolCall("c2", "edit", json.dumps({"old_string": "a", "new_string": evil, evil: [evil]})),
        )
        results = (ToolResult("c1", evil, evil, is_error=True), ToolResult("c2", evil), ToolResult("c3", evil))
        others = (Media("image/svg+xml", evil, evil, evil), Unknown(evil))
        answered(store, "evil", ThinkingBlock(evil), Text(evil), *calls, *others, results=results)
        whole = evil.encode("utf-8", "replace").decode()  # a column takes no halves of characters
        store.log.describe(info.id, About(whole, whole, whole))
        thought = next(commit for commit in store.commits("evil") if commit.kind == "reasoning")
        session = store.session("evil", endpoint="deepseek", model="deepseek-v4-pro")
        session.annotate(thought.hash, thinkback.Priority.PINNED, reason=evil, message=evil)
        seen = _looked(store, info.id, evil)
    for answer in seen:
        Page(answer)
        assert not UNSEEN.search(answer)


def _looked(store: SessionStore, id: str, evil: str) -> list[str]:
    client = TestClient(application(store), base_url="http://127.0.0.1:8000")
    ways = ["/", f"/session/{id}"]
    ways += [f"/session/{id}/block/{commit.hash}" for commit in store.commits("evil")]
    answers = [client.get(way) for way in ways]
    wanted = evil.encode("utf-8", "replace").decode()[:300]
    answers += [
        client.get(way, params={"q": wanted, "branch": wanted, "at": wanted}) for way in ("/", "/search", ways[1])
    ]
    assert {200, 404} >= {answer.status_code for answer in answers}
    assert 200 == answers[1].status_code
    return [answer.text for answer in answers]


@given(st.text(st.sampled_from("<>&\"'`*_[]()#|-~!\\\n \t:/ab{}%\u202e\x1b"), max_size=200))
@settings(max_examples=25, deadline=None)
def test_whatever_markdown_says_only_plain_tags_come_of_it(source: str) -> None:
    """No attribute, no address, no tag beyond those of prose."""
    Page(str(text.markdown(source)))
    Page(str(text.structured(source)))
    Page(str(text.call(source)))


VARIED = "\n".join(chr(0x100 + number * number % 241) for number in range(5_000))


def test_emoji_that_are_joined_stay_one() -> None:
    """A joiner elsewhere is not seen, and stands as a sign."""
    family = (
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f\u200d\U0001f525 \U0001f3c3\U0001f3fd\u200d\u2640\ufe0f"
    )

    assert family == text.plain(family)
    assert "a\ufffdb \U0001f525\ufffd" == text.plain("a\u200db \U0001f525\u200d")


def test_joiners_between_letters_that_need_them_stay() -> None:
    """Persian and the scripts of India are spelled with them; between Latin letters and at a word's end they hide."""
    persian, hindi = (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",
    )

    assert (persian, hindi) == (text.plain(persian), text.plain(hindi))
    assert "a\ufffdb \u0645\ufffd \ufffd\u0645" == text.plain("a\u200cb \u0645\u200c \u200d\u0645")


@pytest.mark.parametrize(
    "source",
    [
        "[" * 900 + ",".join("1" * 8_000) + "]" * 900,
        json.dumps({"a": '"' * 9_000}),
        json.dumps({"old_string": VARIED, "new_string": VARIED[::-1]}),
        '{"a":' * 900 + "1" + "}" * 900,
    ],
    ids=["deep", "quotes", "lines", "members"],
)
def test_what_is_laid_out_costs_little(source: str) -> None:
    """Depth, quotes that nothing closes, and lines that are all alike."""
    began = time.process_time()
    written = [str(text.structured(source)), str(text.call(source)), str(text.call(json.dumps({"x": [source]})))]
    try:
        written += [str(text.as_json(json.loads(source))) for _ in range(20)]
        written.append(str(text.call('{"x": ' + source + "}")))
    except ValueError:
        pass
    assert time.process_time() - began < 3
    assert max(map(len, written)) < 400_000
    for each in written:
        Page(each)


def test_a_change_of_many_lines_is_folded_and_whole() -> None:
    """What is alike at both ends is not looked at; the rest is compared only where that costs little."""
    few, many = ({"old_string": "a\n" * lines, "new_string": "b\n" * lines} for lines in (200, 2_000))
    long = "\n".join(map(str, range(5_000)))
    one = {"old_string": long, "new_string": long.replace("\n2500\n", "\nhere\n")}

    assert ("<details>" in text.call(json.dumps(few)), text.call(json.dumps(few)).count("<ins>")) == (False, 200)
    assert ("<details>" in text.call(json.dumps(many)), text.call(json.dumps(many)).count("<ins>")) == (True, 2_000)
    changed = str(text.call(json.dumps(one)))
    assert " 2499\n<del>-2500</del>\n<ins>+here</ins>\n 2501" in changed
    assert "2400" not in changed


@pytest.mark.parametrize("language", ["css", "diff", "javascript", "python", "yaml"])
def test_code_is_marked_and_any_text_that_calls_itself_code_costs_little(language: str) -> None:
    """Nothing of it is lost, and nothing of it is markup."""
    began = time.process_time()
    for piece in ("a.", "'\\", "{{", "@", "<b>"):
        source = piece * (code.LONGEST // len(piece))
        written = str(code.coloured(source, language))
        assert source == unescape(re.sub("</?span[^>]*>", "", written))
        assert "<b" not in written
    assert time.process_time() - began < 4


def test_a_fenced_block_is_marked_by_its_language() -> None:
    """In an answer; one without a language, or with an unknown one, stands as it is."""
    known = text.markdown("```python\ndef f(): return '<b>'\n```")

    assert "<span class=h-k>def</span>" in known
    assert "&lt;b&gt;" in known
    for other in ("```\ndef f()\n```", "```x onload=1\ndef f()\n```"):
        assert "<pre><code>def f()\n</code></pre>" in text.markdown(other)


def test_a_value_of_any_depth_is_shown() -> None:
    """What cannot be laid out stands as it is, or is named."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert "deep" in text.as_json(deep)
