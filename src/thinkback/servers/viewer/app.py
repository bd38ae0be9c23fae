"""The viewer as an ASGI application: its addresses, and what is shown at each. It only looks.

An address is made of ids and hashes alone; no text of the log becomes one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from thinkback.errors import BusyError, HeadMovedError, NotFoundError, StoreError, ThinkbackError, UnsupportedContent
from thinkback.log.protocol import Hit, Query, SessionInfo
from thinkback.model.commits import Commit, Head
from thinkback.model.curation import curate
from thinkback.observe.cost import Prices
from thinkback.servers.viewer import looking_back, text
from thinkback.servers.viewer.conversation import Entry, Weight, part_of, weights_of
from thinkback.servers.viewer.door import form_of
from thinkback.servers.viewer.indexing import Indexing, IndexState
from thinkback.servers.viewer.lines import Line, Lines
from thinkback.servers.viewer.live import MOST, Piece, Watch, place_of
from thinkback.servers.viewer.numbers import DAYS, Figures
from thinkback.servers.viewer.pages import STATIC, page
from thinkback.servers.viewer.replay import Column
from thinkback.servers.viewer.sessions import Listing, Wanted, narrowed, saying
from thinkback.servers.viewer.timeline import NONE as NO_TIME
from thinkback.servers.viewer.timeline import Timeline, timeline_of
from thinkback.servers.viewer.tree import LANE, WIDTH, differences, lanes_of
from thinkback.servers.viewer.writing import Writing, change_of, unpacked
from thinkback.session.history.revisions import branch_with
from thinkback.session.observing import readable_prices, usd_of
from thinkback.session.store import SessionStore

_HITS = 50
_CHANGES = 100
"""Differences on a page."""
_BRANCHES = 50
"""Branches on which a commit is looked for."""
_MESSAGES = 60
"""Messages of a request that its page lays out."""
_PATIENCE, _TYPING = 1.0, 0.2
"""Seconds that a search waits for the index of words, and one that is not finished."""
_SAID, _SHOWN = 200, 2
"""Places that are looked for at once, and that stand with each session."""
_LARGEST = 4_000_000
"""Bytes of a form."""
_EDITABLE = 200_000
"""Characters of a text that a form has to be edited."""
_MOST_DAYS = 36_500
_KINDS = {"reasoning": ("reasoning",), "said": ("user", "assistant"), "tools": ("tool_call", "tool_result")}
_STATIC = {"viewer.css": "text/css", "viewer.js": "text/javascript", "icon.svg": "image/svg+xml"}
_HASH = re.compile(r"[0-9a-f]{4,64}")
NO_PAGE = NotFoundError("there is no such page", next_actions=("the list of sessions leads everywhere",))


class Found(NamedTuple):
    """A place where words were said or thought, with the words marked."""

    hit: Hit
    excerpt: Markup


class Opened(NamedTuple):
    """The block that a link leads to, by the beginning of its ``hash``: it is unfolded, with ``words`` marked."""

    hash: str
    words: Sequence[str]

    def holds(self, commit: Commit) -> bool:
        """True if that is ``commit``."""
        return self.hash != "" and commit.hash.startswith(self.hash)


class Viewer(NamedTuple):
    """What the pages are made from."""

    store: SessionStore
    listing: Listing
    lines: Lines
    figures: Figures
    indexing: Indexing
    writing: Writing | None = None
    signs_out: bool = False

    def html(self, name: str, status: int = 200, **values: object) -> Response:
        """A page."""
        written = page(name, self.writing is not None, signs_out=self.signs_out, **values)
        return Response(written, status, media_type="text/html; charset=utf-8")

    def session(self, request: Request) -> SessionInfo:
        """The session in the address, by its id."""
        return self.store.find(request.path_params["session"])

    def line(self, info: SessionInfo, request: Request) -> tuple[str, Line]:
        """The branch that is asked for, else the current one, and its line."""
        branch = request.query_params.get("branch") or info.branch
        return branch, self.lines.read(info, branch)

    def coming(self, info: SessionInfo, line: Line, to: str) -> Column:
        """The next request, ``to`` another place than the last one where it is said."""
        return looking_back.coming(self.store, info, line, to, is_guest=self.signs_out)


def application(
    store: SessionStore,
    is_over: Callable[[], bool] = lambda: False,
    writing: Writing | None = None,
    *,
    signs_out: bool = False,
    called: Callable[[str], str] = str,
) -> Starlette:
    """The viewer of ``store``, which only looks without ``writing``. Who may ask is for whoever serves it
    (``door.Door``, ``sign_in.SignIn``) to check; streams end once ``is_over`` says that the server does. ``signs_out``:
    whoever looks is a guest. Pages have a form for leaving; they show neither how requests are sent from here nor what
    this machine's files say of it, for which ``store`` has no rules but the packaged ones. ``called``: how pages call a
    session of a name.
    """
    viewer = Viewer(
        store, Listing(store, called=called), Lines(store.log), Figures(store), Indexing(store), writing, signs_out
    )

    def shown(work: Callable[[Viewer, Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                return work(viewer, request)
            except ThinkbackError as error:
                status = 404 if isinstance(error, NotFoundError) else 500
                if status == 500 and signs_out:  # names of files and databases are for who runs this
                    error = StoreError("the log cannot be read at the moment")
                return viewer.html("error.html", status, error=error)
            except RecursionError:
                return viewer.html("error.html", 500, error=UnsupportedContent("something in it is nested too deeply"))

        return answer

    routes = [
        Route("/", shown(sessions)),
        Route("/search", shown(search)),
        Route("/numbers", shown(numbers)),
        Route("/keys", lambda _: viewer.html("keys.html")),
        Route("/static/{name}", lambda request: static_file(request.path_params["name"])),
        Route("/session/{session}", shown(conversation)),
        Route("/session/{session}/live", following(viewer, is_over)),
        Route("/session/{session}/request/{hash}", shown(went_back)),
        Route("/session/{session}/request/{hash}/body", shown(body)),
        Route("/session/{session}/next", shown(would_go)),
        Route("/session/{session}/tree", shown(tree)),
        Route("/session/{session}/commit/{hash}", shown(permalink)),
        Route("/session/{session}/block/{hash}", shown(block)),
        Route("/session/{session}/block/{hash}/markdown", shown(markdown)),
    ]
    if writing is not None:
        curate = curating(viewer, writing)
        for way in ("/session/{session}/curate", "/session/{session}/curate/{hash}"):
            routes.append(Route(way, curate, methods=["GET", "POST"]))
    return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_found})


def _not_found(_request: Request, _error: Exception) -> Response:
    return _html("error.html", 404, error=NO_PAGE)


def _html(name: str, status: int = 200, **values: object) -> Response:
    return Response(page(name, False, **values), status, media_type="text/html; charset=utf-8")


def static_file(name: str) -> Response:
    """A file of the package."""
    if name not in _STATIC:
        return _html("error.html", 404, error=NO_PAGE)
    return FileResponse(STATIC / name, media_type=_STATIC[name], headers={"cache-control": "private, max-age=3600"})


def sessions(viewer: Viewer, request: Request) -> Response:
    """The list of sessions: all, or those that are wanted, with the places where the words were said and thought."""
    given = {name: request.query_params.get(name, "").strip() for name in ("q", *Wanted._fields[1:])}
    wanted = Wanted(*given.values())
    is_typed = bool(request.query_params.get("part"))
    page_number = _number(request, "page", 1)
    newest = viewer.listing.newest() if not any(given.values()) and page_number == 1 else None
    if newest is not None:  # a large log: what it can be narrowed by is counted once something is looked for
        listed, total = newest
        return viewer.html(
            "list.html" if is_typed else "sessions.html",
            wanted=wanted,
            listed=listed,
            total=total,
            facets={},
            said={row.info.id: [] for row in listed.rows},
            words=[],
            index="whole",
            link=_linked(**given),
            to_hit="",
        )
    every = viewer.listing.every()
    within = narrowed(every, wanted)
    index: IndexState = "whole"
    found, has_words = saying(within, wanted.text, ()), re.search(r"\w", wanted.text) is not None
    if has_words:
        index = viewer.indexing.bring_up_to_date(_TYPING if is_typed else _PATIENCE)
        if len(found) < len(within):
            found = saying(within, wanted.text, viewer.store.log.search.find_owners(wanted.text, prefix=True))
    listed = viewer.listing.page(found, page_number)
    words = _words(wanted.text)
    ids = [row.info.id for row in listed.rows]
    said = _said(viewer, wanted.text, ids) if has_words else {}
    return viewer.html(
        "list.html" if is_typed else "sessions.html",
        wanted=wanted,
        listed=listed,
        total=len(every),
        facets={} if is_typed else viewer.listing.facets(found),
        said={id: [Found(hit, text.highlighted(hit.excerpt, words)) for hit in said.get(id, ())] for id in ids},
        words=words,
        index=index,
        link=_linked(**given),
        to_hit=_linked(q=wanted.text)(),
    )


def _words(text: str) -> list[str]:
    """What is marked where it is found."""
    return re.findall(r"[^\s\"]+", text)[:8]


def _said(viewer: Viewer, asked: str, ids: Sequence[str]) -> dict[str, list[Hit]]:
    """The newest places of the words in each of these sessions, some of each, however many another one has."""
    found: dict[str, list[Hit]] = {id: [] for id in ids}
    left, look = tuple(ids), viewer.store.log.search
    while left:
        hits = look.find(Query(asked, limit=_SAID, owners=left, prefix=True))
        for id in left:
            found[id] = [hit for hit in hits if hit.session == id][:_SHOWN]
        left = tuple(id for id in left if len(found[id]) < _SHOWN) if len(hits) == _SAID else ()
    return found


def search(viewer: Viewer, request: Request) -> Response:
    """The places where words were said and thought, a page at a time."""
    wanted, kind = request.query_params.get("q", "").strip(), request.query_params.get("in", "")
    before = _number(request, "before", 0)
    is_typed = bool(request.query_params.get("part"))
    index = viewer.indexing.bring_up_to_date(_TYPING if is_typed else _PATIENCE) if wanted else "whole"
    asked = Query(wanted, _KINDS.get(kind, ()), limit=_HITS + 1, prefix=True, before=before or None)
    hits = viewer.store.log.search.find(asked) if wanted else []
    where = viewer.listing.places({hit.session for hit in hits})
    words = _words(wanted)
    found = [(hit, where.get(hit.session), text.highlighted(hit.excerpt, words)) for hit in hits[:_HITS]]
    return viewer.html(
        "hits.html" if is_typed else "search.html",
        wanted=wanted,
        kind=kind,
        kinds=tuple(_KINDS),
        found=found,
        index=index,
        before=before,
        older=hits[_HITS - 1].arrival if len(hits) > _HITS else 0,
        link=_linked(**{"q": wanted, "in": kind}),
        to_hit=_linked(q=wanted)(),
    )


def numbers(viewer: Viewer, request: Request) -> Response:
    """What was used: by day, model, project and effort."""
    days = min(_number(request, "days", 30), _MOST_DAYS)
    model, project = (request.query_params.get(name, "") for name in ("model", "project"))
    return viewer.html(
        "numbers.html",
        report=viewer.figures.report(days, project, model),
        named=viewer.listing.called(viewer.figures.places),
        days=days,
        choices=DAYS,
        model=model,
        project=project,
        link=_linked(days=str(days), model=model, project=project),
    )


def conversation(viewer: Viewer, request: Request) -> Response:
    """A page of a conversation: the one that holds the commit ``at``, else the last one."""
    info = viewer.session(request)
    branch, line = viewer.line(info, request)
    pages = line.entries.pages()
    at = _number(request, "at", -1)
    number = len(pages) - 1
    if at >= 0:
        number = next((n for n, each in enumerate(pages) if each.last >= at), number)
    here: Sequence[int] = range(pages[number].begin, pages[number].end) if pages else ()
    prices = readable_prices()
    shown = [shown_of(line.entries, at, prices) for at in here]
    starts = [each.first for each in pages]
    link = _linked(branch=branch if branch != info.branch else "")
    query = link() if branch != info.branch else ""
    return viewer.html(
        "conversation.html",
        info=info,
        row=viewer.listing.row(info),
        branch=branch,
        branches=viewer.store.log.refs.list(info.id),
        line=line,
        shown=shown,
        starts=starts,
        number=number,
        link=link,
        query=query,
        live=place_of(line) if number == len(pages) - 1 else "",
        tab="conversation",
        asked=_asked(line, query),
        opened=Opened(request.query_params.get("open", ""), _words(request.query_params.get("q", ""))),
        sent={commit.hash for commit in line.requests},
    )


def following(viewer: Viewer, is_over: Callable[[], bool]) -> Callable[[Request], Awaitable[Response]]:
    """The streams of what is added to conversations whose pages are open."""
    open_now = 0

    def begun(request: Request) -> Watch:
        info = viewer.session(request)
        branch, _ = viewer.line(info, request)
        query = _linked(branch=branch)() if branch != info.branch else ""

        def written(line: Line, piece: Piece) -> str:
            sent = {commit.hash for commit in line.requests}
            more = {"info": info, "piece": piece, "sent": sent, "query": query}
            prices = readable_prices()
            shown = shown_of(line.entries, piece.number, prices)
            opening = shown_of(line.entries, line.opening(piece.number), prices)
            return page("added.html", viewer.writing is not None, shown=shown, opening=opening, **more).decode()

        place = request.headers.get("last-event-id") or request.query_params.get("after", "")
        return Watch(viewer.store, viewer.lines, info, branch, place, written)

    async def live(request: Request) -> Response:
        nonlocal open_now
        if open_now >= MOST:
            return Response(status_code=204)  # a browser does not ask again then
        try:
            watch = await run_in_threadpool(begun, request)
        except ThinkbackError:
            return Response(status_code=204)

        async def events() -> AsyncIterator[bytes]:
            nonlocal open_now
            open_now += 1
            try:
                async for event in watch.events(run_in_threadpool, asyncio.sleep, is_over):
                    yield event
            finally:
                open_now -= 1

        return StreamingResponse(events(), media_type="text/event-stream")

    return live


def went_back(viewer: Viewer, request: Request) -> Response:
    """A request beside the log; beside it the one that ``beside`` names, or the next one ``to`` another place."""
    info = viewer.session(request)
    branch, line = viewer.line(info, request)
    hash = _whole_hash(line, request.path_params["hash"])
    columns = [looking_back.sent(line, hash)]
    beside, to = request.query_params.get("beside", ""), request.query_params.get("to", "")
    if beside:  # the older one stands first
        other = _whole_hash(line, beside)
        hashes = [commit.hash for commit in line.requests]
        columns.insert(0 if hashes.index(other) < hashes.index(hash) else 1, looking_back.sent(line, other))
    elif to:
        columns.append(viewer.coming(info, line, to))
    return _looked_back(viewer, request, info, branch, line, columns, hash)


def would_go(viewer: Viewer, request: Request) -> Response:
    """The next request, beside it the one ``to`` another place."""
    info = viewer.session(request)
    line = viewer.lines.read(info, info.branch)
    to = request.query_params.get("to", "")
    columns = [viewer.coming(info, line, "")] if line.requests or not to else []
    if to:
        columns.append(viewer.coming(info, line, to))
    return _looked_back(viewer, request, info, info.branch, line, columns, "")


def _looked_back(
    viewer: Viewer,
    request: Request,
    info: SessionInfo,
    branch: str,
    line: Line,
    columns: list[Column],
    hash: str,
) -> Response:
    only = request.query_params.get("only", "")
    view = looking_back.view(line, columns, only, _number(request, "at", -1))
    own = next((column for column in columns if column.hash == hash), columns[0])
    messages, rest = looking_back.sent_messages(own, line)
    hashes = [commit.hash for commit in line.requests]
    at = hashes.index(hash) if hash else -1
    kept = {name: request.query_params.get(name, "") for name in ("beside", "to")}
    other = branch if branch != info.branch else ""
    return viewer.html(
        "request.html",
        info=info,
        row=viewer.listing.row(info),
        branch=branch,
        view=view,
        own=own,
        hash=hash,
        at=at,
        hashes=hashes,
        only=only,
        to=kept["to"],
        beside=kept["beside"],
        mendings=looking_back.mendings(line.commits, hash) if hash else [],
        messages=messages[-_MESSAGES:],
        left=max(0, len(messages) - _MESSAGES),
        rest=rest,
        curl=looking_back.curl_of(own, f"request-{hash[:12]}.json") if hash and not viewer.signs_out else "",
        destinations=looking_back.destinations(viewer.store),
        is_current=branch == info.branch,
        link=_linked(branch=other, only=only, **kept),
        plain=_linked(branch=other),
        tab="request" if hash else "next",
        asked=_asked(line, _linked(branch=other)() if other else ""),
    )


def body(viewer: Viewer, request: Request) -> Response:
    """The body of a request, as it was built again, as a file."""
    info = viewer.session(request)
    _, line = viewer.line(info, request)
    column = looking_back.sent(line, _whole_hash(line, request.path_params["hash"]))
    if column.plan is None:
        raise NotFoundError(column.failed)
    name = f"request-{request.path_params['hash'][:12]}.json"
    told = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(bytes(column.plan), media_type="application/json", headers=told)


def tree(viewer: Viewer, request: Request) -> Response:
    """The branches of a session and of its family as a picture; below it what ``new`` says differently from ``old``."""
    info = viewer.session(request)
    old, new = (request.query_params.get(name, "").strip() for name in ("old", "new"))
    found, failed = None, ""
    try:
        found = differences(viewer.store, info, old, new) if old and new else None
    except ThinkbackError as error:
        failed = error.message
    changes = found.changes if found is not None else ()
    last = max(1, -(-len(changes) // _CHANGES))
    number = min(max(_number(request, "page", 1), 1), last)
    return viewer.html(
        "tree.html",
        info=info,
        row=viewer.listing.row(info),
        lanes=lanes_of(viewer.store, info),
        width=WIDTH,
        lane=LANE,
        old=old,
        new=new,
        found=found,
        failed=failed,
        shown=changes[(number - 1) * _CHANGES : number * _CHANGES],
        number=number,
        last=last,
        link=_linked(old=old, new=new),
        asked=_asked(viewer.lines.read(info, info.branch)),
    )


def _whole_hash(line: Line, name: str) -> str:
    """The hash of the request that ``name`` begins."""
    found = [commit.hash for commit in line.requests if _HASH.fullmatch(name) and commit.hash.startswith(name)]
    if len(found) != 1:
        raise NotFoundError("that is no request of this branch", next_actions=("its conversation leads to requests",))
    return found[0]


class Shown(NamedTuple):
    """An entry with what its thoughts took, by commit, what it cost, and the time of the turn that it opens."""

    entry: Entry
    weights: dict[str, Weight]
    usd: float | None
    timeline: Timeline


def shown_of(entries: Sequence[Entry], at: int, prices: Prices | None) -> Shown:
    """The entry number ``at``."""
    entry = entries[at]
    usd = usd_of([entry.use], prices) if entry.use is not None else None
    timeline = timeline_of(entries, at) if entry.opens else NO_TIME
    return Shown(entry, weights_of(entry), usd, timeline)


def permalink(viewer: Viewer, request: Request) -> Response:
    """To the place of a commit in its conversation, on whichever branch it is."""
    info = viewer.session(request)
    commit, branch, line = _commit(viewer, info, request)
    asked = request.query_params.get("q", "")
    if line is None:
        return RedirectResponse(f"/session/{info.id}/block/{commit.hash}{_linked(q=asked)() if asked else ''}", 303)
    entry = line.entries[line.places[commit.hash]] if commit.hash in line.places else None
    at = entry.first.seq if entry is not None else commit.seq
    link = _linked(branch=branch if branch != info.branch else "", q=asked)
    return RedirectResponse(f"/session/{info.id}{link(at=at, open=commit.hash[:12])}#b-{commit.hash[:12]}", 303)


def _commit(viewer: Viewer, info: SessionInfo, request: Request) -> tuple[Commit, str, Line | None]:
    """The commit in the address, and the branch it is on, if any: the one asked for, the current one, others."""
    name = request.path_params["hash"]
    if not _HASH.fullmatch(name):
        raise NotFoundError("that is no hash")
    log = viewer.store.log
    _, commit = log.find_commit(name, info.id)
    first = [name for name in (request.query_params.get("branch", ""), info.branch) if name]
    branch = branch_with(log, info.id, Head(commit.hash, commit.seq), first, _BRANCHES)
    return commit, branch, viewer.lines.read(info, branch) if branch else None


def block(viewer: Viewer, request: Request) -> Response:
    """One message or block whole, some of it at a time."""
    info = viewer.session(request)
    commit, _, line = _commit(viewer, info, request)
    commits = line.commits if line is not None else viewer.store.log.read_to(info.id, commit.hash)
    part = part_of(commit, curate(commits))
    room = text.LONGEST * 5
    last = max(0, -(-len(part.text) // room) - 1)
    number = min(max(_number(request, "part", 0), 0), last)
    piece = part.text[number * room : (number + 1) * room]
    return viewer.html(
        "block.html",
        info=info,
        row=viewer.listing.row(info),
        part=part,
        piece=piece,
        number=number,
        last=last,
        words=_words(request.query_params.get("q", "")),
        link=_linked(q=request.query_params.get("q", "")),
    )


def curating(viewer: Viewer, writing: Writing) -> Callable[[Request], Awaitable[Response]]:
    """What can be changed of a message, a block or its session: a form, what would come of it, and then the change."""

    async def answer(request: Request) -> Response:
        try:
            given = await form_of(request, _LARGEST) if request.method == "POST" else {}
            return await run_in_threadpool(_curated, viewer, writing, request, given)
        except ThinkbackError as error:
            status = 404 if isinstance(error, NotFoundError) else 400
            status = 409 if isinstance(error, BusyError | HeadMovedError) else status
            return viewer.html("error.html", status, error=error)

    return answer


def _curated(viewer: Viewer, writing: Writing, request: Request, given: dict[str, str]) -> Response:
    info = viewer.session(request)
    name = request.path_params.get("hash", "")
    commit, line = None, None
    if name:
        commit, _, line = _commit(viewer, info, request)
    target = commit.hash if commit is not None else ""
    if given and not writing.is_ours(info.id, given.get("token", "")):
        raise ThinkbackError("this form is not of this viewer", next_actions=("load its page again",))
    values: dict[str, Any] = {
        "info": info,
        "row": viewer.listing.row(info),
        "token": writing.token(info.id),
        "target": target,
    }
    if not given:
        part = None
        if commit is not None:
            part = part_of(commit, curate(line.commits if line is not None else [commit]))
        return viewer.html("curate.html", part=part, most=_EDITABLE, **values)
    if "seal" not in given:
        outlook = writing.outlook(info, change_of(given.get("act", ""), target, given))
        seal, packed = writing.seal(info.id, outlook), outlook.change.packed
        return viewer.html("outlook.html", outlook=outlook, seal=seal, packed=packed, **values)
    change = unpacked(given.get("change", ""), target)
    done = writing.do(info, change, given.get("head", ""), given["seal"])
    viewer.lines.forget()
    viewer.listing.forget()
    if change.act == "branch":
        return RedirectResponse(f"/session/{info.id}?branch={quote(done, safe='')}", 303)
    return RedirectResponse(f"/session/{info.id}/commit/{target}" if target else f"/session/{info.id}", 303)


def markdown(viewer: Viewer, request: Request) -> Response:
    """One message or block as Markdown, to be copied."""
    info = viewer.session(request)
    commit, _, line = _commit(viewer, info, request)
    part = part_of(commit, curate(line.commits if line is not None else viewer.store.log.read_to(info.id, commit.hash)))
    said = text.as_markdown(part.kind, part.title, part.text)
    return Response(said.encode("utf-8", "backslashreplace"), media_type="text/plain; charset=utf-8")


def _asked(line: Line, query: str = "") -> str:
    """The request that was sent last, as the way to what went back; ``query`` names a branch that is not current."""
    return f"{line.requests[-1].hash[:16]}{query}" if line.requests else ""


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, "")
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 12 else default


def _linked(**kept: str) -> Callable[..., str]:
    """A query with what is kept of this page's, for links."""

    def link(**more: object) -> str:
        query = {name: str(value) for name, value in {**kept, **more}.items() if value not in ("", None)}
        return f"?{urlencode(query, errors='replace')}" if query else "?"

    return link
