"""Every surface of a log, walked: commands, pages, tools; and what of it was no good answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from html import unescape
from pathlib import Path
from typing import Protocol

from starlette.testclient import TestClient

from tests.cli.command import Outcome
from thinkback.servers.mcp import reading
from thinkback.servers.viewer.app import application
from thinkback.session.store import SessionStore

OTHERS = (
    "openai/gpt-5.4",
    "anthropic/claude-opus-5-5",
    "gemini/gemini-3.1-pro-preview",
    "gemini-interactions/gemini-3.5-flash",
    "kimi/kimi-k2.6",
    "bedrock/anthropic.claude-opus-5-5",
    "mistral/mistral-large-latest",
    "ollama-native/qwen3:4b",
    "cohere/command-a-reasoning-08-2025",
)
"""Models that the next request of each session is planned for: one at least of each dialect."""
FORMATS = ("jsonl", "markdown", "html")
_LINK = re.compile(r'href="(/[^"]*)"')


class Run(Protocol):
    """``thinkback``, as a function of its arguments."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Outcome: ...


class Faults(list[str]):
    """What was no good answer, a line each."""

    def check(self, what: str, is_good: object, detail: str = "") -> None:
        """Note ``what`` unless it is good."""
        if not is_good:
            self.append(f"{what}: {detail[-300:]}")


NEXT = ("--endpoint", "kimi", "--model", "kimi-k2.6")
"""Where the next request of a session goes that has none of its own here."""


def shown_by_commands(run: Run, sessions: Sequence[str], faults: Faults, to: Path) -> None:
    """``sessions``, ``usage``, and for each session ``log``, ``why``, ``show`` and ``usage``; exports."""
    listed = run("sessions", "--json")
    faults.check("sessions", listed.code == 0, listed.err)
    for words in (
        ("sessions",),
        ("usage", "--all"),
        ("usage", "--by", "model", "--all"),
        ("usage", "--by", "session"),
        ("fsck",),
    ):
        _checked(run, faults, *words)
    for name in sessions:
        _checked(run, faults, "log", name)
        _checked(run, faults, "why", name)
        _checked(run, faults, "usage", name)
        _checked(run, faults, "why", name, "--next", "--json", *NEXT)
        rows = _checked(run, faults, "log", name, "--json")
        _checked(run, faults, "show", _newest_hash(rows.out))
    for form in FORMATS:
        _checked(run, faults, "export", str(to / f"all.{form}"), "--format", form, "--complete", "--force")


def _checked(run: Run, faults: Faults, *words: str, stdin: bytes = b"") -> Outcome:
    done = run(*words, stdin=stdin)
    is_good = done.code == 0 and "Traceback" not in done.err + done.out
    faults.check(" ".join(words), is_good, f"exit {done.code} {done.err} {done.out[-200:]}")
    return done


def shown_by_the_chat(run: Run, name: str, faults: Faults) -> None:
    """``/why`` in a chat that asks nothing."""
    _checked(run, faults, "chat", "--session", name, *NEXT, stdin=b"/why\n/quit\n")


def _newest_hash(rows: str) -> str:
    return str((re.findall(r'"hash": "(\w+)"', rows) or ["none"])[-1])


def shown_by_pages(store: SessionStore, faults: Faults, others: Sequence[str] = OTHERS, most: int = 3_000) -> int:
    """Every page by following links from the first, and the next request of each session for ``others``."""
    with TestClient(application(store), base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as browser:
        waiting, seen = ["/", "/numbers", "/?q=weather", "/search?q=weather"], set[str]()
        while waiting and len(seen) < most:
            path = waiting.pop()
            if path in seen or path.endswith("/live"):
                continue
            seen.add(path)
            answer = browser.get(path)
            faults.check(f"page {path}", answer.status_code == 200, f"{answer.status_code} {_said(answer.text)}")
            if "html" in answer.headers.get("content-type", ""):
                waiting += links_of(answer.text, others)
    return len(seen)


def links_of(html: str, others: Sequence[str] = OTHERS) -> Iterator[str]:
    """Where a page leads to on this site; what would go next is asked for other models too."""
    for found in dict.fromkeys(unescape(link).partition("#")[0] for link in _LINK.findall(html)):
        if found.startswith("/static"):
            continue
        yield found
        if found.endswith("/next"):
            yield from (f"{found}?to={other}" for other in others)


def _said(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def shown_to_agents(store: SessionStore, faults: Faults) -> None:
    """The tools of the MCP server."""
    listed = reading.list_sessions(store, reading.ListSessions(limit=100))
    for name in [each["name"] for each in listed["sessions"]]:
        for what, work in (
            ("read", partial(reading.read_session, store, reading.ReadSession(session=name))),
            ("why", partial(reading.why, store, reading.Why(session=name))),
            ("usage", partial(reading.usage, store, reading.Usage(session=name))),
        ):
            try:
                faults.check(f"mcp {what} {name}", work())
            except Exception as error:  # whatever it is, an agent would get it
                faults.append(f"mcp {what} {name}: {type(error).__name__}: {error}")
    found = reading.search_reasoning(store, reading.SearchReasoning(text="Thought"))
    faults.check("mcp search", found)


def contradictions(run: Run, store: SessionStore) -> list[str]:
    """Figures of one session that two surfaces give differently: its tokens, its cost, the part of reasoning."""
    found = Faults()
    listed = {each["name"]: each for each in run("sessions", "--json").json}
    with TestClient(application(store), base_url="http://127.0.0.1:8000") as browser:
        for name, row in listed.items():
            used = run("usage", name, "--json").json["total"]
            told = reading.usage(store, reading.Usage(session=name))
            tokens = used["input"] + used["output"]
            found.check(f"{name}: tokens", row["tokens"] == tokens, f"sessions {row['tokens']}, usage {tokens}")
            found.check(f"{name}: cost", row["cost_usd"] == used["cost_usd"], f"{row['cost_usd']}, {used['cost_usd']}")
            for key in ("input", "output", "reasoning"):
                found.check(f"{name}: {key}", told[key] == used[key], f"mcp {told[key]}, usage {used[key]}")
            head = _said(browser.get(f"/session/{row['id']}").text)
            shown = re.search(r"([\d,]+) tokens, ([\d,]+) of reasoning", head)
            figures = f"{tokens:,}", f"{used['reasoning']:,}"
            found.check(f"{name}: page", shown and shown.groups() == figures, f"{shown and shown[0]}, usage {figures}")
    return found
