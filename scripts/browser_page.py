"""What the checks of the viewer in a browser have in common: a place to look at, a page that is watched, its rules."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Route

import thinkback
from thinkback.servers.viewer.app import application
from thinkback.servers.viewer.door import Door
from thinkback.servers.viewer.writing import Writing
from thinkback.session.store import SessionStore

ROOT = Path(__file__).parents[1]
AXE = ROOT / "scripts" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SIZES = {"360": (360, 780), "1280": (1280, 860), "3840": (3840, 2160)}
SCHEMES = ("light", "dark")
WAITS = 180_000
"""Milliseconds that a page or what is to be on it is waited for at most."""
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}"


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


@contextmanager
def viewed(path: str, *options: str) -> Iterator[Place]:
    """The viewer of the log at ``path``, by the command, in a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen(
            [sys.executable, "-m", "thinkback", "view", "--no-browser", "--db", path, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "THINKBACK_CONFIG_DIR": home},
            # what is started in the background would ignore Ctrl-C
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        assert process.stdout is not None
        try:
            link = process.stdout.readline().decode().strip()
            if not link:
                raise RuntimeError(process.communicate()[1].decode())
            with thinkback.open(path, rules={}, settings={}) as store:
                yield Place(link.partition("/?")[0], link, store)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """A context whose pages are waited for as long as they take on a machine that has other work."""
    context = browser.new_context(**options)
    context.set_default_timeout(WAITS)
    return context


class Watch:
    """What a page did that it must not do."""

    def __init__(self, page: Page, url: str) -> None:
        self.faults: list[str] = []
        self._url = url
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"script failed: {error}"))
        page.route("**/*", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        # of a page whose own status it is
        if message.type == "error" and not re.search("status of 40[14]", message.text):
            self.faults.append(f"console: {message.text}")

    def _asked(self, route: Route) -> None:
        if route.request.url.startswith((self._url, "data:")):
            route.continue_()
        else:
            self.faults.append(f"asked for {route.request.url}")
            route.abort()


def let_in(browser: Browser, place: Place) -> Any:
    """The cookie for the link, without JavaScript."""
    context = new_context(browser, java_script_enabled=False)
    page = context.new_page()
    # a link in another site's page: what that site leads to gets no cookie that is for this one's pages alone
    page.route("http://elsewhere.test/", lambda route: route.fulfill(body=f"<a href='{place.link}'>in</a>"))
    page.goto("http://elsewhere.test/")
    page.get_by_role("link", name="in").click()
    page.wait_for_url(f"{place.url}/")
    assert page.locator("h1").inner_text() == "Sessions"
    return context.storage_state()


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


def breaches(page: Page) -> list[str]:
    """What axe-core's rules say of a page as it is."""
    page.add_script_tag(path=AXE)
    found = page.evaluate(f"axe.run(document, {RULES})")
    faults = [f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:160]}" for each in found["violations"]]
    return faults if len(found["passes"]) >= 10 else [*faults, "the rules of axe-core did not run"]


def too_wide(page: Page) -> list[str]:
    is_wider = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return ["it is wider than the window"] if is_wider else []


def follow(page: Page, control: Locator) -> None:
    """Click and wait until the page that comes is whole: a click alone waits for its beginning at most."""
    with page.expect_navigation():
        control.click()


def first_paint(page: Page) -> float:
    """Milliseconds until something of the page was to be seen."""
    return float(page.evaluate(_PAINT))


_PAINT = """new Promise(done => new PerformanceObserver(
    list => list.getEntriesByName('first-contentful-paint').forEach(each => done(each.startTime))
).observe({type: 'paint', buffered: true}))"""
