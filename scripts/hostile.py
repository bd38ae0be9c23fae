"""Texts that want to be more than characters, and a log of sessions that are made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from thinkback.log.protocol import About
from thinkback.log.seal import seal
from thinkback.model.blocks import Block, Media, Origin, Text, ThinkingBlock, ToolCall, ToolResult, Unknown
from thinkback.model.commits import Draft, Message, Response, Step, block_draft
from thinkback.session.store import SessionStore

HOSTILE = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "quote": "\"'><svg/onload=alert(1)><a href=javascript:alert(1)>x</a>",
    "style": "<style>*{background:url(http://evil.test/x)}</style><link rel=stylesheet href=//evil.test>",
    "markdown": "[x](javascript:alert(1)) ![y](http://evil.test/p.png) <http://evil.test> [z]: //evil.test\n\n[z]",
    "entities": "&lt;script&gt;&#60;script&#62;&amp;lt;b&amp;gt;",
    "template": "{{ raise }} {{ 7*7 }} {% include '/etc/passwd' %} ${7*7} #{7*7}",
    "unseen": "a\xad\u061c\u200b\u200c\u200d\u200e\u200f\u2060\u2064\ufeff\u3164b &#8238;&#x200b;&shy;&zwj;&rlm;",
    "bidi": "abc \u202e\u2066gnirts\u2069 \u200b\u061c \ufeff\U000e0041",
    "ansi": "\x1b[2J\x1b]8;;http://evil.test\x07link\x1b]8;;\x07\x00\x08",
    "frame": "<iframe srcdoc='<script>1</script>'></iframe><object data=x><embed src=x><base href=//evil.test>",
    "form": "<form action=//evil.test><input name=token autofocus onfocus=alert(1)><button>",
    "math": "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "meta": "<meta http-equiv=refresh content='0;url=//evil.test'><noscript><p title='</noscript><img src=x>'>",
    "surrogate": "a \ud800 b \udfff",
    "deep": "> " * 100 + "deep " + "[" * 500 + "*" * 200,
    "ticks": "`" * 3_000 + "<b>" + "~~~\n" * 50,
    "lists": "\n".join("  " * n + "- x" for n in range(40)),
    "table": "| a | b |\n|:-:|--:|\n" + "| <b>x</b> | `y` |\n" * 5,
    "json": json.dumps({"<script>": ["</pre><script>alert(1)</script>", {"a": "\u202e"}]}),
    "nested": "[" * 5_000,
    "numbers": "[" + "9" * 6_000 + "]",
    "diff": "@@ -1 +1 @@\n-<b>old</b>\n+<script>new</script>\n",
    "href": "data:text/html,<script>alert(1)</script>",
}

LONG = 50_000_000
_ORIGIN = Origin("openai-chat", "https://evil.test/v1", "<b>evil</b>")


def add_hostile_sessions(store: SessionStore, count: int) -> Iterator[str]:
    """Sessions whose every text is two of these, one of them also with a text of 50 million characters; their ids."""
    texts = [*HOSTILE.values()]
    for number in range(count):
        evil = texts[number % len(texts)] + " " + texts[(number * 7 + 3) % len(texts)]
        long = "<script>document.title='run'</script> " * (LONG // 38) if number == 1 else evil
        whole = evil.encode("utf-8", "replace").decode()[:2_000]
        info = store.log.create_session(f"hostile-{number}", f"hostile-{number}", number + 1, about=About(whole, whole))
        arguments = json.dumps({"old_string": "a", "new_string": evil, "command": evil, "path": [evil]})
        blocks: tuple[Block, ...] = (
            ThinkingBlock(evil),
            Text(long),
            ToolCall("c1", evil[:200], arguments),
            ToolCall("c2", "x", evil),
        )
        others: tuple[Block, ...] = (Media("image/svg+xml", evil, evil, evil), Unknown(evil))
        drafts = [
            Draft("user", Message(evil)),
            Draft("response", Response(_ORIGIN, id="r", finish="stop", blocks=6, outcome="answered"), "r"),
            *(block_draft(block, "r", at) for at, block in enumerate([*blocks, *others])),
            Draft("tool_result", ToolResult("c1", evil, evil, is_error=True), "r"),
            Draft("tool_result", ToolResult("c2", long), "r"),
        ]
        store.log.append(info.id, "said", seal(Step("said", tuple(drafts), number + 2), info.head), info.head)
        yield info.id
