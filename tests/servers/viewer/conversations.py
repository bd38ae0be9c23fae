"""Logs to look at, made without a provider, and what a page of them holds."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.stores.samples import ORIGIN, put
from thinkback.log.protocol import SessionInfo
from thinkback.model.blocks import Block, ToolResult
from thinkback.model.commits import Draft, Message, Request, Response, Step, TurnEnded, Usage, block_draft
from thinkback.session.store import SessionStore

VOID = frozenset({"meta", "link", "input", "br", "hr", "rect", "path", "circle", "line"})
TAGS = VOID | {
    *("script", "noscript", "dialog", "kbd"),
    *("html", "head", "title", "body", "a", "header", "nav", "main", "span", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("form", "label", "div", "button", "p", "table", "thead", "tbody", "tr", "th", "td", "time", "svg", "article"),
    *(
        "details",
        "summary",
        "caption",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "pre",
        "code",
        "em",
        "strong",
        "s",
        "blockquote",
    ),
    *(
        "mark",
        "ins",
        "del",
        "fieldset",
        "legend",
        "section",
        "b",
        "select",
        "option",
        "datalist",
        "g",
        "text",
        "aside",
        "figure",
        "figcaption",
    ),
}
ATTRIBUTES = {
    *(
        "lang",
        "charset",
        "name",
        "content",
        "rel",
        "href",
        "class",
        "id",
        "data-live",
        "data-again",
        "data-copy",
        "data-again-in",
        "http-equiv",
        "preserveaspectratio",
        "tabindex",
        "for",
        "role",
        "type",
        "value",
    ),
    *(
        "autocomplete",
        "required",
        "preserveaspectratio",
        "placeholder",
        "action",
        "scope",
        "viewbox",
        "width",
        "height",
        "rx",
        "datetime",
        "title",
        "dir",
        "start",
    ),
    *("open", "checked", "selected", "list", "x", "y", "r", "cx", "cy", "fill", "d", "aria-label", "aria-current"),
    *(
        "src",
        "defer",
        "data-up",
        "data-typed",
        "method",
        "aria-labelledby",
        "aria-describedby",
        "aria-hidden",
        "download",
        "text-anchor",
        "transform",
    ),
}


class Page(HTMLParser):
    """Reads a page and refuses what has no place in one: tags, attributes and addresses that templates do not write."""

    tags: frozenset[str] = TAGS

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert [] == self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Only what is known."""
        assert tag in self.tags, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, (tag, attrs)
        for name, value in attrs:
            if name in ("href", "action"):
                assert value is not None
                assert value[:1] in ("/", "?", "#"), value
                assert value[:2] != "//"
                self.links.append(value)
            if name == "src":
                assert (tag, value) == ("script", "/static/viewer.js")
            if name == "id":
                self.ids.append(value or "")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag without an end."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """What was opened last."""
        assert tag == self._open.pop(), tag

    def handle_data(self, data: str) -> None:
        """What people read."""
        self.text += data


def asked(store: SessionStore, name: str, question: str = "Why?", *, time: int = 1_000_000) -> SessionInfo:
    """A session ``name`` with a question."""
    info = store.log.create_session(f"id-of-{name}", name, time)
    put(store.log, info.id, Step(f"asked in {name}", (Draft("user", Message(question)),), time))
    return info


def answered(
    store: SessionStore, session: str, *blocks: Block, results: tuple[ToolResult, ...] = (), time: int = 3_000_000
) -> None:
    """A response with ``blocks``, the results of its calls, and the end of the turn."""
    info = store.find(session)
    id = f"response {info.head.seq}"
    header = Response(ORIGIN, id=id, finish="stop", blocks=len(blocks), outcome="answered")
    asked = Request({}, {}, (), "{}", info.head.hash, "", "", "", "", "", "")
    drafts = [
        Draft("request", asked, id),
        Draft("response", header, id),
        *(block_draft(block, id, at) for at, block in enumerate(blocks)),
    ]
    drafts.append(Draft("provider_usage", Usage(100, 60, 40), id))
    put(store.log, info.id, Step(f"step {id}", tuple(drafts), time))
    rest = [Draft("tool_result", result, id) for result in results]
    put(store.log, info.id, Step(f"end {id}", (*rest, Draft("turn_ended", TurnEnded("completed"))), time))
