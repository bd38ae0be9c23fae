"""What other agents may read of a log: sessions, what was said and thought, why, and what it used.

Promises: every answer is bounded and says how to get the rest; what is opaque, an address, an account or a key is in
none of them. Must not: change anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from thinkback.errors import NotFoundError
from thinkback.log.protocol import Hit, SessionInfo
from thinkback.log.sharing import Leaving, Sharing
from thinkback.log.transcript import TranscriptPart, pieces_of
from thinkback.model.blocks import ThinkingBlock, ToolCall, ToolResult, is_shown
from thinkback.model.commits import Commit, Compaction, Payload, Request, Response, surviving
from thinkback.model.curation import curate
from thinkback.model.target import Decision
from thinkback.session.history.search import Filters, SearchHit, facets
from thinkback.session.places import NOWHERE, Place, places
from thinkback.session.store import SessionStore
from thinkback.session.transcripts.ink import iso
from thinkback.turn.plan import Plan
from thinkback.turn.spending import Spending
from thinkback.turn.usage import TokenUse

Json = dict[str, Any]

LONGEST_TEXT = 8_000
"""Characters of one commit on a page of a session; ``read_commit`` has the rest."""
LONGEST_PAGE = 40_000
_SAID = frozenset(
    {
        *("system", "user", "assistant", "reasoning", "tool_call", "tool_result"),
        *("media", "other", "content", "branch_summary", "merge", "turn_ended"),
    }
)
_ADDRESS = re.compile(r"https?://[^\s,;)]+")

Page = Annotated[int, Meta(ge=0, description="How many to leave out at the beginning: next_offset of the page before.")]
SessionName = Annotated[str, Meta(description="Name or id of a session; empty for the one used last.")]


class ListSessions(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``list_sessions``."""

    match: Annotated[str, Meta(description="Only sessions whose name contains this.")] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="At most so many.")] = 20
    offset: Page = 0


class SearchReasoning(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``search_reasoning``."""

    text: Annotated[str, Meta(description='Words that must all be there; "words in quotes" side by side.')] = ""
    model: Annotated[str, Meta(description="The model that reasoned, as asked for or as served.")] = ""
    tool: Annotated[str, Meta(description="A tool that the same response called afterwards.")] = ""
    since: Annotated[str, Meta(description="From this time on: 2026-07-01, 2026-07-01T12:30:00Z, or 30d, 12h.")] = ""
    until: Annotated[str, Meta(description="Before this time.")] = ""
    program: Annotated[str, Meta(description="Only sessions of this program, such as codex or claude-code.")] = ""
    project: Annotated[str, Meta(description="Only sessions of this project: the name of its folder.")] = ""
    session: Annotated[str, Meta(description="Only in this session, by name or id; empty for all.")] = ""
    everything: Annotated[bool, Meta(description="Also in messages, calls and results, not in reasoning alone.")] = (
        False
    )
    limit: Annotated[int, Meta(ge=1, le=50, description="At most so many.")] = 10
    before: Annotated[int, Meta(ge=0, description="next_before of the page before; 0 for the first.")] = 0
    facets: Annotated[
        bool, Meta(description="Instead of hits, how many there are by program, model, project and day.")
    ] = False


class ReadSession(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``read_session``."""

    session: SessionName = ""
    branch: Annotated[str, Meta(description="A branch of it; empty for the current one.")] = ""
    reasoning: Annotated[bool, Meta(description="With what was thought, not only what was said.")] = True
    limit: Annotated[int, Meta(ge=1, le=100, description="At most so many entries.")] = 20
    offset: Annotated[
        int, Meta(description="How many entries to leave out at the beginning; below 0 counts from the end.")
    ] = 0


class ReadCommit(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``read_commit``."""

    commit: Annotated[str, Meta(min_length=4, max_length=64, description="The beginning of a commit's hash.")]
    limit: Annotated[int, Meta(ge=1, le=LONGEST_PAGE, description="At most so many characters.")] = 20_000
    offset: Page = 0


class Why(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``why``."""

    commit: Annotated[
        str, Meta(max_length=64, description="The beginning of the hash of a request, an answer, a call or a result.")
    ] = ""
    session: Annotated[str, Meta(description="Without a commit: the last request of this session.")] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="At most so many decisions.")] = 50
    offset: Page = 0


class Usage(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``usage``."""

    session: Annotated[str, Meta(description="A session by name or id; empty for all of them together.")] = ""
    limit: Annotated[int, Meta(ge=1, le=100, description="Of all sessions: at most so many are told apart.")] = 20
    offset: Page = 0


def list_sessions(store: SessionStore, asked: ListSessions) -> Json:
    """Sessions, last used first."""
    found = [info for info in store.sessions() if asked.match.lower() in info.name.lower()]
    page = found[asked.offset : asked.offset + asked.limit]
    return _paged({"sessions": [_session(info) for info in page]}, asked.offset + len(page), len(found))


def search_reasoning(store: SessionStore, asked: SearchReasoning) -> Json:
    """Hits of a search, newest first."""
    filters: Filters = {"limit": asked.limit}
    if asked.model:
        filters["model"] = asked.model
    if asked.tool:
        filters["tool"] = asked.tool
    if asked.since:
        filters["since"] = asked.since
    if asked.until:
        filters["until"] = asked.until
    if asked.program:
        filters["program"] = asked.program
    if asked.project:
        filters["project"] = asked.project
    if asked.facets:
        owner = store.find(asked.session).id if asked.session else ""
        counted = facets(store.log, asked.text, owner, reasoning=not asked.everything, **filters)
        return {"counted": counted.hits, "newest_only": counted.has_more, **counted.counts}
    if asked.before:
        filters["before"] = SearchHit(store.log, Hit("", "", "", 0, "", "", "", 0, "", asked.before))
    look = store.search if asked.everything else store.find_reasoning
    found = look(asked.text, session=asked.session, **filters)
    where = places(store.log)
    hits = [each.hit for each in found]
    told: Json = {"hits": [{**_hit(hit), **_place(hit, where.get(hit.session, NOWHERE))} for hit in hits]}
    if len(hits) == asked.limit:
        told["next_before"] = hits[-1].arrival
    return told


def read_session(store: SessionStore, asked: ReadSession) -> Json:
    """A page of what was said, and thought, on a branch."""
    info = _chosen(store, asked.session)
    line = _Line(store.log.read(info.id, branch=asked.branch or info.branch), asked.reasoning)
    first = asked.offset if asked.offset >= 0 else max(0, len(line.told) + asked.offset)
    page: list[Json] = []
    room = LONGEST_PAGE
    for commit in line.told[first : first + asked.limit]:
        entry = line.entry(commit)
        room -= len(entry.get("text", "")) + 100
        if room < 0 and page:
            break
        page.append(entry)
    told = {"session": info.name, "branch": asked.branch or info.branch, "offset": first, "entries": page}
    return _paged(told, first + len(page), len(line.told))


def read_commit(store: SessionStore, asked: ReadCommit) -> Json:
    """A page of the text of one commit."""
    session, commit = store.log.find_commit(asked.commit)
    leaving = Leaving(Sharing(reasoning=True), 0)
    text = _text_of(leaving.payload(surviving(commit.value)))
    page = text[asked.offset : asked.offset + asked.limit]
    told = {"commit": commit.hash, "session": store.find(session).name, **_about(commit), "text": page}
    return _paged(told, asked.offset + len(page), len(text))


def why(store: SessionStore, asked: Why) -> Json:
    """Which reasoning led to a commit, and what the request that brought it carried of earlier reasoning."""
    if asked.commit:
        if len(asked.commit) < 4:
            raise NotFoundError("a hash needs at least 4 characters", next_actions=("search and read tools tell it",))
        owner, commit = store.log.find_commit(asked.commit)
        info = store.find(owner)
        found = store.session(info.name).why(commit.hash)
        told: Json = {"session": info.name, "commit": commit.hash, "kind": commit.kind}
        told["reasoning"] = [_clipped(thought, LONGEST_TEXT // 4) for thought in found.reasoning[-20:]]
        if found.plan is None:
            return {**told, "unknown": _without_addresses(found.unknown)}
        return told | _decisions(found.plan, asked)
    info = _chosen(store, asked.session)
    return {"session": info.name, **_decisions(store.session(info.name).explain(), asked)}


def usage(store: SessionStore, asked: Usage) -> Json:
    """Tokens by model, of one session or of all."""
    if asked.session:
        info = store.find(asked.session)
        return {"session": info.name, **_spending(store.session(info.name).usage.total())}
    used = store.usage()
    names = list(used.sessions)
    page = names[asked.offset : asked.offset + asked.limit]
    by_session = {name: {"steps": used.sessions[name].steps, **_use(used.sessions[name].use)} for name in page}
    return _paged({**_spending(used.total), "by_session": by_session}, asked.offset + len(page), len(names))


def _chosen(store: SessionStore, name: str) -> SessionInfo:
    if name:
        return store.find(name)
    sessions = store.sessions()
    if not sessions:
        raise NotFoundError("the log has no sessions yet")
    return sessions[0]


def _paged(told: Json, end: int, total: int) -> Json:
    """``told`` with the size of the whole, and where to go on if that is not its end."""
    return {**told, "total": total, **({"next_offset": end} if end < total else {})}


def _session(info: SessionInfo) -> Json:
    told: Json = {
        "name": info.name,
        "id": info.id,
        "branch": info.branch,
        "commits": info.commits,
        "created": iso(info.created),
        "updated": iso(info.updated),
    }
    return told | {key: said for key, said in (("parent", info.parent), ("purpose", info.purpose)) if said}


def _place(hit: Hit, place: Place) -> Json:
    said = (("title", place.title), ("program", place.program), ("project", place.project))
    return {"session": place.session or hit.session, **{key: value for key, value in said if value}}


def _hit(hit: Hit) -> Json:
    said = (("model", hit.model), ("tool", hit.tool))
    return {
        "commit": hit.hash,
        "kind": hit.kind,
        "time": iso(hit.time),
        "tokens": hit.tokens,
        "excerpt": hit.excerpt,
        **{key: value for key, value in said if value},
    }


class _Line:
    """A history as agents read it; ``told`` are the commits of which something is told. Only those of a page are worked
    out, without what is opaque and whose account paid.
    """

    def __init__(self, commits: Sequence[Commit], reasoning: bool) -> None:
        self._curation = curate(commits)
        self._leaving = Leaving(Sharing(reasoning=True), 0)
        self._models: dict[str, str] = {}
        self.told: list[Commit] = []
        for commit in commits:
            value = surviving(commit.value)
            if isinstance(value, Response | Request):
                self._leaving.learn(value)
            if isinstance(value, Response):
                self._models[commit.response] = value.origin.served_model or value.origin.requested_model
            if (reasoning or commit.kind != "reasoning") and not commit.edit and self._is_told(commit):
                self.told.append(commit)

    def entry(self, commit: Commit) -> Json:
        """What is told of one of them."""
        value = self._leaving.payload(self._curation.value(commit))
        kind = "failure" if isinstance(value, Response) else commit.kind
        told: Json = {"commit": commit.hash, "kind": kind, "time": iso(commit.time)}
        if model := self._models.get(commit.response):
            told["model"] = model
        if isinstance(value, ToolCall | ToolResult):
            told["tool"] = value.name
        if self._curation.is_changed(commit):
            told["edited"] = True
        text = _text_of(value)
        told["text"] = text[:LONGEST_TEXT]
        if len(text) > LONGEST_TEXT:
            told["note"] = f"{len(text)} characters; read_commit has all of them"
        elif isinstance(value, ThinkingBlock) and not text:
            told["note"] = "it reasoned, and the provider gave no readable text"
        return told

    def _is_told(self, commit: Commit) -> bool:
        value = self._curation.value(commit)
        match value:
            case Response():
                return value.error is not None
            case ThinkingBlock():
                return is_shown(value)
            case Compaction():
                return bool(value.summary)
            case _:
                return commit.kind in _SAID and any(True for _ in pieces_of(value))


def _text_of(value: Payload) -> str:
    match value:
        case Response():
            return value.error.message if value.error is not None else ""
        case Compaction():
            return value.summary
        case _:
            return "\n".join(map(_words, pieces_of(value)))


def _words(piece: TranscriptPart) -> str:
    """What is told of a piece; of an image or a file only that it is there."""
    return f"({piece.label})" if piece.form == "media" else piece.text


def _about(commit: Commit) -> Json:
    return {"kind": commit.kind, "time": iso(commit.time)}


def _clipped(commit: Commit, most: int) -> Json:
    value = surviving(commit.value)
    text = value.thought if isinstance(value, ThinkingBlock) else ""
    return {"commit": commit.hash, **_about(commit), "text": text[:most], "characters": len(text)}


def _decisions(plan: Plan, asked: Why) -> Json:
    """What a request carried of earlier reasoning, block by block."""
    found = plan.decisions
    page = found[asked.offset : asked.offset + asked.limit]
    target = plan.target
    told = {
        "endpoint": target.endpoint.id,
        "model": target.model,
        "rule": target.rule.id,
        "guessed": target.guessed,
        "counts": msgspec.structs.asdict(plan.counts),
        "controls": [f"{c.key} = {c.value} ({c.state}) {_without_addresses(c.reason)}".strip() for c in plan.controls],
        "reported": [_without_addresses(f"{where}: {what}") for where, what in plan.report.removed[: asked.limit]],
        "decisions": [_decision(decision) for decision in page],
    }
    return _paged(told, asked.offset + len(page), len(found))


def _decision(decision: Decision) -> Json:
    told = msgspec.to_builtins(decision)
    return {key: _without_addresses(said) if isinstance(said, str) else said for key, said in told.items()}


def _without_addresses(text: str) -> str:
    """``text`` without addresses: some are named after who asked."""
    return _ADDRESS.sub("(address)", text)


def _spending(spent: Spending) -> Json:
    models: Iterable[tuple[str, TokenUse]] = list(spent.models.items())[:50]
    by_model = {model or "unknown": _use(use) for model, use in models}
    return {"steps": spent.steps, **_use(spent.use), "by_model": by_model}


def _use(use: TokenUse) -> Json:
    return {key: getattr(use, key) for key in ("input", "cached", "output", "reasoning", "estimated")}
