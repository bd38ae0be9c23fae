"""Looks at the viewer in a real browser: each page, what it may not do, and pictures of it.

``make browser`` runs it: Debian's chromium, driven by Playwright's Python package, and axe-core's rules.
``--docs`` takes the pictures of docs/viewer.md anew; all others go to ``--to``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, sync_playwright

import thinkback
from scripts.browser_logs import add_curated, databases, gateway, whole
from scripts.browser_page import (
    ARGUMENTS,
    AXE,
    CHROMIUM,
    ROOT,
    SCHEMES,
    SIZES,
    Place,
    Watch,
    breaches,
    follow,
    let_in,
    new_context,
    served,
    too_wide,
    unfold,
    viewed,
)
from scripts.browser_walk import walk, watch_gateway
from scripts.hostile import HOSTILE, add_hostile_sessions
from scripts.viewer_log import make, make_past
from thinkback.servers.viewer import sharing
from thinkback.servers.viewer.door import LIFETIME
from thinkback.session.store import SessionStore
from thinkback_referee import Call, Referee, Step

FIRST_PAGE = 100_000
HOSTILE_SESSIONS = 200
FOREIGN = "script, img, style, link, iframe, object, embed, base, meta, math"
HOSTILE_WAYS = (
    ("", f"{FOREIGN}, form, input"),
    ("/next?to=deepseek/deepseek-v4-pro", FOREIGN),
    ("/tree?old=main%5E8&new=main", FOREIGN),
)
EVIL = "<img src=http://evil.test/x onerror=\"document.title='run'\"><script>document.title='run'</script>[x](data:1)"


def pages_of(store: SessionStore) -> dict[str, str]:
    """The pages by name."""
    primes, card, plan = (store.find(name).id for name in ("primes", "card", "plan"))
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
        "tree": f"/session/{plan}/tree?old=other&new=main",
        "block": f"/session/{primes}/block/{thought.hash}",
        "numbers": "/numbers?days=0",
        "missing": "/session/none",
    }


def look(browser: Browser, place: Place, state: Any, to: Path) -> list[str]:
    """Every page at every size and in both schemes; what is wrong with them."""
    faults = []
    for scheme in SCHEMES:
        for size, (width, height) in SIZES.items():
            context = new_context(
                browser,
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
                watch.faults += too_wide(page)
                faults += [f"{where}: {fault}" for fault in watch.faults]
                watch.faults.clear()
            context.close()
    return faults


def axe(browser: Browser, place: Place, state: Any) -> list[str]:
    """What axe-core's rules for WCAG 2.2 AA say of each page, everything on it unfolded."""
    faults = []
    for scheme in SCHEMES:
        for width in (360, 1280):
            context = new_context(
                browser,
                viewport={"width": width, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
                storage_state=state,
                bypass_csp=True,  # the rules are no script of the page
            )
            page = context.new_page()
            for name, path in pages_of(place.store).items():
                page.goto(place.url + path)
                unfold(page)
                faults += [f"axe, {name} at {width}, {scheme}: {breach}" for breach in breaches(page)]
            context.close()
    return faults


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
                context = new_context(browser, **window, java_script_enabled=False)
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
    context = new_context(browser, viewport={"width": 360, "height": 780}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(url)
    unfold(page)
    faults = breaches(page) + too_wide(page)
    if page.title() == "run" or page.locator("main script, main style, main iframe").count():
        faults.append("a hostile text took effect")
    context.close()
    return faults


def clicks(browser: Browser, place: Place, state: Any) -> list[str]:
    """From the list to the reason why a block was held back, without JavaScript and by the keyboard alone."""
    context = new_context(browser, java_script_enabled=False, storage_state=state)
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
    context = new_context(browser, storage_state=state)
    page = context.new_page()
    watch = Watch(page, place.url)
    info = place.store.find("evil")
    for path in (f"/session/{info.id}", f"/session/{info.id}/next?to=deepseek/deepseek-v4-pro", "/search?q=evil", "/"):
        page.goto(place.url + path)
        unfold(page)
        page.wait_for_load_state("networkidle")
        if page.title() == "run" or page.locator("main script, main img, main style, main iframe").count():
            watch.faults.append(f"a hostile text took effect on {path}")
    context.close()
    return watch.faults


def many_hostile(browser: Browser, place: Place, state: Any, count: int = HOSTILE_SESSIONS) -> list[str]:
    """So do ``count``, whatever they are made of; each page is there, and nothing pops up. Of the first, which have
    each of the texts, what would go to another model and what two commits say differently are looked at as well.
    """
    context = new_context(browser, storage_state=state)
    page = context.new_page()
    watch = Watch(page, place.url)

    def popped(dialog: Dialog) -> None:
        watch.faults.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", popped)
    began = time.monotonic()
    for number, id in enumerate(add_hostile_sessions(place.store, count)):
        for way, tags in HOSTILE_WAYS[: None if number < len(HOSTILE) else 1]:
            page.goto(f"{place.url}/session/{id}{way}")
            unfold(page)
            foreign = page.locator(f"main :is({tags})")
            if page.locator("article").count() < 2 or foreign.count() or page.title() == "run":
                watch.faults.append(f"hostile session {number} is not as it should be at {way or 'its page'}")
    page.goto(place.url)
    page.goto(f"{place.url}/?q=script")
    print(f"{count} hostile sessions in {time.monotonic() - began:.0f} s")
    context.close()
    return watch.faults


def weight(browser: Browser, place: Place, state: Any) -> list[str]:
    """What the first page weighs, everything that is loaded for it included."""
    context = new_context(browser, storage_state=state)
    page = context.new_page()
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(len(response.body())))
    page.goto(place.url, wait_until="networkidle")
    context.close()
    print(f"the first page: {sum(sizes):,} bytes in {len(sizes)} answers")
    return [f"the first page has {sum(sizes)} bytes"] if sum(sizes) > FIRST_PAGE else []


def grows(browser: Browser, place: Place, state: Any) -> list[str]:
    """A conversation grows while it is written; what was unfolded stays so, and a lost connection loses nothing."""
    context = new_context(browser, storage_state=state)
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
    context = new_context(browser, storage_state=state)
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
    context = new_context(browser, viewport={"width": 1100, "height": 900}, color_scheme="light", storage_state=state)
    page = context.new_page()
    for name, height in (("elsewhere", 1500), ("conversation", 900)):
        page.set_viewport_size({"width": 1100, "height": height})
        page.goto(place.url + pages_of(place.store)[name])
        page.screenshot(path=ROOT / "docs" / f"viewer-{name}.png")
    with tempfile.TemporaryDirectory() as home:
        sharing.export(place.store, f"{home}/primes.html", session="primes", with_reasoning=True)
        page.goto(f"{Path(home, 'primes.html').as_uri()}#why-1")
        page.screenshot(path=ROOT / "docs" / "viewer-file.png")
    with tempfile.TemporaryDirectory() as home:
        make_past(f"{home}/past.db", time.time_ns() // 1000)
        with served(f"{home}/past.db") as own:
            inner = new_context(
                browser,
                viewport={"width": 1100, "height": 900},
                color_scheme="light",
                storage_state=let_in(browser, own),
            ).new_page()
            inner.goto(f"{own.url}/numbers?days=90")
            while inner.get_by_text("are counted so far").count():
                inner.reload()
            inner.screenshot(path=ROOT / "docs" / "viewer-numbers.png")
    with served(place.store.place, writes=True) as own:
        inner = new_context(
            browser, viewport={"width": 1100, "height": 760}, color_scheme="light", storage_state=let_in(browser, own)
        ).new_page()
        answer = next(commit.hash for commit in own.store.commits("primes") if commit.kind == "assistant")
        inner.goto(f"{own.url}/session/{own.store.find('primes').id}/curate/{answer}")
        inner.get_by_label("What it is to say").fill("It tried every number; those up to the square root are enough.")
        follow(inner, inner.get_by_role("form", name="Edit").get_by_role("button"))
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


def forms(browser: Browser, place: Place, state: Any) -> list[str]:
    """The page of changes and what it says of one, by axe-core's rules, with pictures."""
    faults = []
    with served(place.store.place, writes=True) as own:
        state = let_in(browser, own)
        answer = next(commit.hash for commit in own.store.commits("haiku") if commit.kind == "assistant")
        for scheme in SCHEMES:
            for size, (width, height) in SIZES.items():
                window: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
                context = new_context(browser, **window, storage_state=state, bypass_csp=True)
                page = context.new_page()
                page.goto(f"{own.url}/session/{own.store.find('haiku').id}/curate/{answer}")
                for name in ("change", "outlook"):
                    page.screenshot(path=ROOT / ".browser" / f"{name}-{size}-{scheme}.png")
                    faults += [f"{name} at {size}, {scheme}: {fault}" for fault in breaches(page) + too_wide(page)]
                    if name == "change":
                        page.get_by_label("What it is to say").fill("Said otherwise.")
                        follow(page, page.get_by_role("form", name="Edit").get_by_role("button"))
                context.close()
    return faults


CHECKS = {
    "axe": axe,
    "clicks": clicks,
    "hostile": hostile,
    "weight": weight,
    "grows": grows,
    "typed": typed,
    "forms": forms,
    "many": many_hostile,
}


def _pages(browser: Browser, path: str, given: argparse.Namespace) -> list[str]:
    """Each page by itself, over a log in a file."""
    with Referee() as referee:
        make(path, referee)
        with thinkback.open(path, rules={}, settings={}) as store:
            add_hostile(store, referee)
            add_curated(store, referee)
    with served(path) as place, viewed(path) as unused:
        begun = time.monotonic()
        state = let_in(browser, place)
        faults = look(browser, place, state, given.to) if given.only in (None, "look") else []
        faults += files(browser, place, given.to) if given.only in (None, "files") else []
        for name, check in CHECKS.items():
            faults += check(browser, place, state) if given.only in (None, name) else []
        if given.docs:
            illustrate(browser, place, state)
        faults += too_late(browser, unused, begun) if given.only is None else []
    return faults


def too_late(browser: Browser, unused: Place, begun: float) -> list[str]:
    """A link that nobody followed is dead after a minute, which the other checks take as a rule."""
    page = new_context(browser).new_page()
    page.wait_for_timeout(max(0.0, begun + LIFETIME + 1 - time.monotonic()) * 1_000)
    page.goto(unused.link)
    said = page.locator("body").inner_text()
    page.close()
    return [] if "within a minute" in said else [f"a link holds for more than a minute: {said[:200]}"]


def _walks(browser: Browser, home: Path, given: argparse.Namespace) -> list[str]:
    """All that the viewer promises, in each database: over a log with histories, and one that a gateway writes."""
    faults = []
    with databases(home) as places:
        for name, (log, gateways) in places.items():
            began = time.monotonic()
            if given.only in (None, "walk"):
                with Referee() as referee:
                    imported = whole(log, referee)
                made = time.monotonic() - began
                faults += walk(browser, name, log, imported, given.to)
                if name != "sqlite":  # whose turn was before, with all of them
                    with viewed(log) as place:
                        faults += many_hostile(browser, place, let_in(browser, place), len(HOSTILE))
                print(
                    f"walked over {name}, {len(imported)} histories, in {time.monotonic() - began:.0f} s, "
                    f"of which {made:.0f} s made the log"
                )
            began = time.monotonic()
            if given.only in (None, "gateway"):
                with gateway(home / name, gateways) as running:
                    faults += watch_gateway(browser, name, running, given.to)
                print(f"a gateway that writes to {name}: {time.monotonic() - began:.0f} s")
    return faults


def main() -> int:
    """Look, and tell what is wrong."""
    options = argparse.ArgumentParser()
    options.add_argument("--to", type=Path, default=ROOT / ".browser")
    options.add_argument("--docs", action="store_true", help="take the pictures of docs/viewer.md")
    options.add_argument("--only", choices=("look", "files", *CHECKS, "walk", "gateway"), help="one of the checks")
    given = options.parse_args()
    for needed, how in ((Path(CHROMIUM), "apt-get install chromium"), (AXE, "npm install in scripts/browser")):
        if not needed.exists():
            print(f"the viewer was not looked at: {needed} is not there ({how})")
            return 1
    given.to.mkdir(exist_ok=True)
    for old in given.to.glob("fault-*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
        faults = []
        if given.only in (None, *CHECKS, "look", "files"):
            faults += _pages(browser, f"{home}/pages.db", given)
        if given.only in (None, "walk", "gateway"):
            faults += _walks(browser, Path(home), given)
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
