"""Looks at the viewer in a real browser: each page, what it may not do, and pictures of it.

``make browser`` runs it: Debian's chromium, driven by Playwright's Python package, and axe-core's rules.
``--docs`` takes the pictures of docs/viewer.md anew; all others go to ``--to``.
"""

from __future__ import annotations

import argparse
import secrets
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, Route, sync_playwright

import thinkback
from scripts.hostile import add_hostile_sessions
from scripts.viewer_log import add_long, make, make_past
from thinkback.servers.viewer import sharing
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.door import Door
from thinkback.servers.viewer.writing import Writing
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step

ROOT = Path(__file__).parents[1]
AXE = ROOT / "scripts" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SIZES = {"360": (360, 780), "1280": (1280, 860), "3840": (3840, 2160)}
SCHEMES = ("light", "dark")
FIRST_PAGE = 100_000
HOSTILE_SESSIONS = 200
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}"
EVIL = "<img src=http://evil.test/x onerror=\"document.title='run'\"><script>document.title='run'</script>[x](data:1)"


class Place(NamedTuple):
    """Where the viewer is served: its address, the link that lets in, and its log."""

    url: str
    link: str
    store: SessionStore


@contextmanager
def served(path: str, writes: bool = False) -> Iterator[Place]:
    """The viewer of the log at ``path``, as the command serves it; ``writes`` as with ``--write``."""
    with thinkback.open(path, rules={}, settings={}) as store, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        host, token = f"127.0.0.1:{listening.getsockname()[1]}", secrets.token_urlsafe(32)
        writing = Writing(store) if writes else None
        door = Door(application(store, lambda: server.should_exit, writing), [host], token, writes=writes)
        server = uvicorn.Server(uvicorn.Config(door, log_config=None, access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Place(f"http://{host}", f"http://{host}/?token={token}", store)
        finally:
            server.should_exit = True
            thread.join()


def pages_of(store: SessionStore) -> dict[str, str]:
    """The pages by name."""
    primes, card = store.find("primes").id, store.find("card").id
    last = [commit for commit in store.commits("primes") if commit.kind == "request"]
    thought = next(commit for commit in store.commits("primes") if commit.kind == "reasoning")
    return {
        "sessions": "/",
        "search": "/search?q=square&in=reasoning",
        "conversation": f"/session/{primes}",
        "went-back": f"/session/{primes}/request/{last[-1].hash}",
        "mended": f"/session/{primes}/request/{last[-2].hash}?beside={last[-3].hash}",
        "elsewhere": f"/session/{primes}/request/{last[-2].hash}?to=deepseek/deepseek-v4-pro",
        "held": f"/session/{card}/next",
        "tree": f"/session/{card}/tree",
        "block": f"/session/{primes}/block/{thought.hash}",
        "numbers": "/numbers?days=0",
        "missing": "/session/none",
    }


class Watch:
    """What a page did that it must not do."""

    def __init__(self, page: Page, url: str) -> None:
        self.faults: list[str] = []
        self._url = url
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"script failed: {error}"))
        page.route("**/*", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "status of 404" not in message.text:
            self.faults.append(f"console: {message.text}")

    def _asked(self, route: Route) -> None:
        if route.request.url.startswith((self._url, "data:")):
            route.continue_()
        else:
            self.faults.append(f"asked for {route.request.url}")
            route.abort()


def let_in(browser: Browser, place: Place) -> Any:
    """The cookie for the link, without JavaScript."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    # a link in another site's page: what that site leads to gets no cookie that is for this one's pages alone
    page.route("http://elsewhere.test/", lambda route: route.fulfill(body=f"<a href='{place.link}'>in</a>"))
    page.goto("http://elsewhere.test/")
    page.get_by_role("link", name="in").click()
    page.wait_for_url(f"{place.url}/")
    assert page.locator("h1").inner_text() == "Sessions"
    return context.storage_state()


def look(browser: Browser, place: Place, state: Any, to: Path) -> list[str]:
    """Every page at every size and in both schemes; what is wrong with them."""
    faults = []
    for scheme in SCHEMES:
        for size, (width, height) in SIZES.items():
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                storage_state=state,
                bypass_csp=False,
            )
            page = context.new_page()
            watch = Watch(page, place.url)
            for name, path in pages_of(place.store).items():
                page.goto(place.url + path)
                page.screenshot(path=to / f"{name}-{size}-{scheme}.png")
                where = f"{name} at {size}, {scheme}"
                watch.faults += _width(page)
                faults += [f"{where}: {fault}" for fault in watch.faults]
                watch.faults.clear()
            context.close()
    return faults


def axe(browser: Browser, place: Place, state: Any) -> list[str]:
    """What axe-core's rules for WCAG 2.2 AA say of each page, everything on it unfolded."""
    faults = []
    for scheme in SCHEMES:
        for width in (360, 1280):
            context = browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
                storage_state=state,
                bypass_csp=True,  # the rules are no script of the page
            )
            page = context.new_page()
            for name, path in pages_of(place.store).items():
                page.goto(place.url + path)
                _unfold(page)
                faults += [f"axe, {name} at {width}, {scheme}: {breach}" for breach in _breaches(page)]
            context.close()
    return faults


def _unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


def _breaches(page: Page) -> list[str]:
    """What axe-core's rules say of a page as it is."""
    page.add_script_tag(path=AXE)
    found = page.evaluate(f"axe.run(document, {RULES})")
    faults = [f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:160]}" for each in found["violations"]]
    return faults if len(found["passes"]) >= 10 else [*faults, "the rules of axe-core did not run"]


def _width(page: Page) -> list[str]:
    is_wider = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return ["it is wider than the window"] if is_wider else []


def files(browser: Browser, place: Place, to: Path) -> list[str]:
    """Sessions as files: opened from the disk without JavaScript, by axe-core's rules, and one of hostile texts."""
    faults = []
    for name, session, reasoning, complete in (
        ("file", "primes", True, False),
        ("file-plain", "card", False, False),
        ("file-evil", "evil", False, True),
        ("file-all", "", True, False),
    ):
        path = to / f"{name}.html"
        sharing.export(
            place.store, path, session=session, with_reasoning=reasoning, complete=complete, with_history=complete
        )
        url = path.resolve().as_uri()
        for scheme in SCHEMES:
            for size, (width, height) in SIZES.items():
                window = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
                context = browser.new_context(**window, java_script_enabled=False)
                page = context.new_page()
                watch = Watch(page, url)
                page.goto(url)
                page.screenshot(path=to / f"{name}-{size}-{scheme}.png")
                page.goto(f"{url}#why-1")
                page.screenshot(path=to / f"{name}-why-{size}-{scheme}.png")
                faults += [f"{name} at {size}, {scheme}: {fault}" for fault in watch.faults]
                context.close()
            faults += [f"{name}, {scheme}: {fault}" for fault in _judged(browser, url, scheme)]
    print(f"a session as a file: {(to / 'file.html').stat().st_size:,} bytes")
    return faults


def _judged(browser: Browser, url: str, scheme: str) -> list[str]:
    """What axe-core's rules say of a file; whether anything of it ran, or is wider than a small window."""
    context = browser.new_context(viewport={"width": 360, "height": 780}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(url)
    _unfold(page)
    faults = _breaches(page) + _width(page)
    if page.title() == "run" or page.locator("main script, main style, main iframe").count():
        faults.append("a hostile text took effect")
    context.close()
    return faults


def clicks(browser: Browser, place: Place, state: Any) -> list[str]:
    """From the list to the reason why a block was held back, without JavaScript and by the keyboard alone."""
    context = browser.new_context(java_script_enabled=False, storage_state=state)
    page = context.new_page()
    page.goto(place.url)
    page.get_by_role("link", name="Why does `primes.py` take nine seconds").click()
    page.get_by_role("link", name="What went back, and why").click()
    said = page.locator(".because").first.inner_text()
    faults = [] if "minted in the anthropic dialect" in said else [f"two clicks do not lead to the reason: {said!r}"]
    page.goto(place.url)
    for _ in range(20):
        page.keyboard.press("Tab")
        if "primes.py" in page.locator(":focus").inner_text():
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/session/**")
    context.close()
    return faults


def hostile(browser: Browser, place: Place, state: Any) -> list[str]:
    """A session whose every text is hostile runs nothing and asks for nothing."""
    context = browser.new_context(storage_state=state)
    page = context.new_page()
    watch = Watch(page, place.url)
    info = place.store.find("evil")
    for path in (f"/session/{info.id}", f"/session/{info.id}/next?to=deepseek/deepseek-v4-pro", "/search?q=evil", "/"):
        page.goto(place.url + path)
        _unfold(page)
        page.wait_for_load_state("networkidle")
        if page.title() == "run" or page.locator("main script, main img, main style, main iframe").count():
            watch.faults.append(f"a hostile text took effect on {path}")
    context.close()
    return watch.faults


def many_hostile(browser: Browser, place: Place, state: Any) -> list[str]:
    """So do two hundred, whatever they are made of; each page is there, and nothing pops up."""
    context = browser.new_context(storage_state=state)
    page = context.new_page()
    watch = Watch(page, place.url)

    def popped(dialog: Dialog) -> None:
        watch.faults.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", popped)
    began = time.monotonic()
    for number, id in enumerate(add_hostile_sessions(place.store, HOSTILE_SESSIONS)):
        path = f"/session/{id}"
        page.goto(place.url + path)
        _unfold(page)
        foreign = page.locator(
            "main :is(script, img, style, link, iframe, object, embed, form, input, base, meta, math)"
        )
        if page.locator("article").count() < 2 or foreign.count() or page.title() == "run":
            watch.faults.append(f"hostile session {number} is not as it should be")
    page.goto(place.url)
    page.goto(f"{place.url}/?q=script")
    print(f"{HOSTILE_SESSIONS} hostile sessions in {time.monotonic() - began:.0f} s")
    context.close()
    return watch.faults


def long_ones(browser: Browser, place: Place, state: Any) -> list[str]:
    """What long conversations take: until the first paint, and at any place of one."""
    faults = []
    context = browser.new_context(storage_state=state)
    page = context.new_page()
    paint = """new Promise(done => new PerformanceObserver(
        list => list.getEntriesByName('first-contentful-paint').forEach(each => done(each.startTime))
    ).observe({type: 'paint', buffered: true}))"""
    page.goto(place.url)  # the style and the script are those of the list
    for commits, most in ((10_000, 300), (50_000, 1_000)):
        add_long(place.store, f"long-{commits}", commits)
        taken = []
        for at in ("", "?at=0", f"?at={commits // 2}", f"?at={commits - 300}", "?at=60"):
            page.goto(f"{place.url}/session/long-{commits}{at}")
            taken.append(page.evaluate(paint))
        told = ", ".join(f"{each:.0f}" for each in taken)
        print(f"{commits:,} commits: first paint after {told} ms (the first one reads the log)")
        if max(taken[1:]) > most:
            faults.append(f"{commits} commits take {max(taken[1:]):.0f} ms until the first paint")
    context.close()
    return faults


def weight(browser: Browser, place: Place, state: Any) -> list[str]:
    """What the first page weighs, everything that is loaded for it included."""
    context = browser.new_context(storage_state=state)
    page = context.new_page()
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto(place.url, wait_until="networkidle")
    context.close()
    print(f"the first page: {sum(sizes):,} bytes in {len(sizes)} answers")
    return [f"the first page has {sum(sizes)} bytes"] if sum(sizes) > FIRST_PAGE else []


def grows(browser: Browser, place: Place, state: Any) -> list[str]:
    """A conversation grows while it is written; what was unfolded stays so, and a lost connection loses nothing."""
    context = browser.new_context(storage_state=state)
    page = context.new_page()
    watch = Watch(page, place.url)
    with Referee() as referee:
        session = place.store.session(
            "alive",
            endpoint="deepseek",
            model="deepseek-v4-pro",
            base_url=referee.base_url("deepseek"),
            api_key="a key",
        )

        def says(word: str) -> None:
            referee.push(Step(reasoning=f"thought of {word}", text=f"answer to {word}"))
            session.chat(f"question about {word}")

        says("one")
        page.goto(f"{place.url}/session/{session.conversation.info.id}")
        page.locator("details").first.evaluate("each => each.open = true")
        says("two")
        page.get_by_text("answer to two").wait_for()
        context.set_offline(True)
        says("three")
        context.set_offline(False)
        page.get_by_text("answer to three").wait_for()
        articles, ids = (
            page.locator("article").count(),
            page.locator("article[id]").evaluate_all("all => new Set(all.map(each => each.id)).size"),
        )
        if (articles, ids) != (6, 6):
            watch.faults.append(f"live: {articles} articles of {ids} entries, not 6")
        if not page.locator("details").first.evaluate("each => each.open"):
            watch.faults.append("live: what was unfolded did not stay so")
        first = session.log()[0].hash
        session.annotate(first, thinkback.Priority.PINNED)
        page.get_by_role("link", name="load the page again").wait_for()
    context.close()
    return [fault for fault in watch.faults if "ERR_INTERNET_DISCONNECTED" not in fault]


def typed(browser: Browser, place: Place, state: Any) -> list[str]:
    """What is typed is answered at once, in the list, and the list is moved in by keys."""
    context = browser.new_context(storage_state=state)
    page = context.new_page()
    watch = Watch(page, place.url)
    page.goto(place.url)
    page.keyboard.press("/")
    page.keyboard.type("isqrt")
    page.locator("mark", has_text="isqrt").first.wait_for()
    if "q=isqrt" not in page.url or page.locator(".sessions tbody tr").count() != 1:
        watch.faults.append("typed: the list is not that of the words")
    page.goto(place.url)
    for keys in ("jjk", "G", "gj"):
        page.keyboard.type(keys)
    rows = page.locator(".sessions tbody tr")
    if page.locator(":focus").inner_text() != rows.nth(1).locator("a").first.inner_text():
        watch.faults.append("keys: j does not lead to the next session")
    page.keyboard.press("l")
    page.wait_for_url("**/session/**")
    page.keyboard.press("g")
    page.keyboard.press("h")
    page.wait_for_url(f"{place.url}/")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    context.close()
    return watch.faults


def illustrate(browser: Browser, place: Place, state: Any) -> None:
    """The pictures of docs/viewer.md."""
    context = browser.new_context(viewport={"width": 1100, "height": 900}, color_scheme="light", storage_state=state)
    page = context.new_page()
    for name in ("elsewhere", "conversation"):
        page.goto(place.url + pages_of(place.store)[name])
        page.screenshot(path=ROOT / "docs" / f"viewer-{name}.png")
    with tempfile.TemporaryDirectory() as home:
        sharing.export(place.store, f"{home}/primes.html", session="primes", with_reasoning=True)
        page.goto(f"{Path(home, 'primes.html').as_uri()}#why-1")
        page.screenshot(path=ROOT / "docs" / "viewer-file.png")
    with tempfile.TemporaryDirectory() as home:
        make_past(f"{home}/past.db", time.time_ns() // 1000)
        with served(f"{home}/past.db") as own:
            inner = browser.new_context(
                viewport={"width": 1100, "height": 900}, color_scheme="light", storage_state=let_in(browser, own)
            ).new_page()
            inner.goto(f"{own.url}/numbers?days=90")
            while inner.get_by_text("are counted so far").count():
                inner.reload()
            inner.screenshot(path=ROOT / "docs" / "viewer-numbers.png")
    with served(place.store.place, writes=True) as own:
        inner = browser.new_context(
            viewport={"width": 1100, "height": 760}, color_scheme="light", storage_state=let_in(browser, own)
        ).new_page()
        answer = next(commit.hash for commit in own.store.commits("primes") if commit.kind == "assistant")
        inner.goto(f"{own.url}/session/{own.store.find('primes').id}/curate/{answer}")
        inner.get_by_label("What it is to say").fill("It tried every number; those up to the square root are enough.")
        _follow(inner, inner.get_by_role("form", name="Edit").get_by_role("button"))
        inner.screenshot(path=ROOT / "docs" / "viewer-change.png")
    context.close()


def add_hostile(store: SessionStore, referee: Referee) -> None:
    """The session ``evil``."""
    session = store.session(
        "evil", endpoint="deepseek", model="deepseek-v4-pro", base_url=referee.base_url("deepseek"), api_key="a key"
    )
    referee.push(
        Step(reasoning=f"evil {EVIL}", text=EVIL, tool_calls=[Call("echo", {"evil": EVIL})]), Step(text=f"evil {EVIL}")
    )

    def echo(evil: str) -> str:
        """Say it again."""
        return evil

    session.chat(f"evil {EVIL}", tools=[echo])


def changes(browser: Browser, place: Place, state: Any) -> list[str]:
    """Annotate, edit and redact by forms, without JavaScript; what would come of it, by axe-core's rules."""
    with served(place.store.place, writes=True) as own:
        state = let_in(browser, own)
        context = browser.new_context(java_script_enabled=False, storage_state=state)
        page = context.new_page()
        watch = Watch(page, own.url)
        page.goto(f"{own.url}/session/{own.store.find('haiku').id}")
        _follow(page, page.get_by_role("link", name="Change Answer"))
        form = page.url.removeprefix(own.url)
        page.get_by_label("Add tags").fill("<b>short</b>, verse")
        _follow(page, page.get_by_role("form", name="Annotate").get_by_role("button"))
        _follow(page, page.get_by_role("button", name="Annotate it"))
        if "<b>short</b>" not in page.locator(".mark").all_inner_texts():
            watch.faults.append(f"the tag is not on the page: {page.locator('main').inner_text()[:200]}")
        page.goto(own.url + form)
        page.get_by_label("Why").first.fill("too short")
        _follow(page, page.get_by_role("button", name="Skip it"))
        if "will not go back" not in page.locator(".comes").inner_text():
            watch.faults.append(f"what is voided is not said: {page.locator('.comes').inner_text()}")
        _follow(page, page.get_by_role("button", name="Skip it"))
        if "too short" not in page.locator(".mark").all_inner_texts():
            watch.faults.append(f"the skip is not on the page: {page.locator('main').inner_text()[:200]}")
        page.goto(own.url + form)
        page.get_by_label("Take out what").fill("twice")
        _follow(page, page.get_by_role("form", name="Redact").get_by_role("button"))
        _follow(page, page.get_by_role("button", name="Erase it for good"))
        if "Asked twice" in page.locator("main").inner_text():
            watch.faults.append("what was redacted is still there")
        context.close()
        return watch.faults + [fault for scheme in SCHEMES for fault in _forms(browser, own, state, form, scheme)]


def _forms(browser: Browser, place: Place, state: Any, path: str, scheme: str) -> list[str]:
    """The page of changes and what it says of one, by axe-core's rules, with pictures."""
    faults = []
    for size, (width, height) in SIZES.items():
        window: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
        context = browser.new_context(**window, storage_state=state, bypass_csp=True)
        page = context.new_page()
        page.goto(place.url + path)
        for name in ("change", "outlook"):
            page.screenshot(path=ROOT / ".browser" / f"{name}-{size}-{scheme}.png")
            faults += [f"{name} at {size}, {scheme}: {fault}" for fault in _breaches(page) + _width(page)]
            if name == "change":
                page.get_by_label("What it is to say").fill("Said otherwise.")
                _follow(page, page.get_by_role("form", name="Edit").get_by_role("button"))
        context.close()
    return faults


def _follow(page: Page, control: Locator) -> None:
    """Click and wait until the page that comes is whole: a click alone waits for its beginning at most."""
    with page.expect_navigation():
        control.click()


CHECKS = {
    "axe": axe,
    "clicks": clicks,
    "hostile": hostile,
    "weight": weight,
    "grows": grows,
    "typed": typed,
    "changes": changes,
    "long": long_ones,
    "many": many_hostile,
}


def main() -> int:
    """Look, and tell what is wrong."""
    options = argparse.ArgumentParser()
    options.add_argument("--to", type=Path, default=ROOT / ".browser")
    options.add_argument("--docs", action="store_true", help="take the pictures of docs/viewer.md")
    options.add_argument("--only", choices=("look", "files", *CHECKS), help="one of the checks")
    given = options.parse_args()
    for needed, how in ((Path(CHROMIUM), "apt-get install chromium"), (AXE, "npm install in scripts/browser")):
        if not needed.exists():
            print(f"the viewer was not looked at: {needed} is not there ({how})")
            return 1
    given.to.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        path = f"{home}/log.db"
        with Referee() as referee:
            make(path, referee)
            with thinkback.open(path, rules={}, settings={}) as store:
                add_hostile(store, referee)
        with served(path) as place, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
            state = let_in(browser, place)
            faults = look(browser, place, state, given.to) if given.only in (None, "look") else []
            faults += files(browser, place, given.to) if given.only in (None, "files") else []
            for name, check in CHECKS.items():
                faults += check(browser, place, state) if given.only in (None, name) else []
            if given.docs:
                illustrate(browser, place, state)
            browser.close()
    for fault in faults:
        print(fault)
    pictures = len(list(given.to.glob("*.png")))
    print(
        f"browser: {len(faults)} faults, {pictures} pictures in {given.to}"
        if faults
        else f"browser: {pictures} pictures"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
