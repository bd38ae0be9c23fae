"""Walks through what the viewer promises, over a log in either database: what ``thinkback view`` and a gateway serve.

Each step waits for what it leads to, and says what is wrong by failing; a picture is left of where it stood.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import Error as PlaywrightError

import thinkback
from scripts.browser_logs import LONG, REPORT, Gateway, opaque_values, thoughts_of
from scripts.browser_page import (
    WAITS,
    Place,
    Watch,
    first_paint,
    follow,
    let_in,
    new_context,
    too_wide,
    unfold,
    viewed,
)
from tests.servers.gateway.harness.house import PATIENCE, thought
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Request
from thinkback.servers.viewer import sharing

COLUMNS = ["Session", "Model", "Turns", "Tokens", "Reasoning", "Cost", "State", "Used"]
ELSEWHERE = "deepseek/deepseek-v4-pro"
OPENED = 1_000
"""Milliseconds until the first paint where the log is yet to be read."""
PAINT = {10_000: 300, 50_000: 1_000}
"""Milliseconds until the first paint, by commits."""
expect.set_options(timeout=WAITS)


class Walker:
    """Takes steps on a page that is watched; ``faults`` are what was wrong, ``name`` is where."""

    def __init__(self, page: Page, url: str, name: str, to: Path) -> None:
        self.faults: list[str] = []
        self._page, self._name, self._to = page, name, to
        self._watch = Watch(page, url)

    def take(self, step: str, work: Callable[..., None], *given: Any) -> None:
        """One step."""
        try:
            work(self._page, *given)
            self._watch.faults += too_wide(self._page)
        except (AssertionError, PlaywrightError) as error:
            self._page.screenshot(path=self._to / f"fault-{self._name}-{step}.png")
            self._watch.faults.append(str(error))
        self.faults += [f"{self._name}, {step}: {fault}" for fault in self._watch.faults]
        self._watch.faults.clear()


def walk(browser: Browser, database: str, path: str, imported: Sequence[str], to: Path) -> list[str]:
    """Through the log at ``path``, as the command serves it; ``imported`` are the sessions of other programs in it."""
    with viewed(path) as place:
        state = let_in(browser, place)
        context = new_context(browser, storage_state=state, permissions=["clipboard-read", "clipboard-write"])
        walker = Walker(context.new_page(), place.url, database, to)
        walker.take("door", door, browser, place, state)
        for step in (listed, searched, narrowed, moved, read, linked, copied, asked, sent, mended, reported, branched):
            walker.take(step.__name__, step, place)
        walker.take("counted", counted, place)
        walker.take("paged", paged, place)
        for session in imported:
            walker.take(f"imported {session}", taken_in, place, session)
        walker.take("exported", exported, place, imported, to)
        context.close()
    with viewed(path, "--write") as place:
        context = new_context(browser, java_script_enabled=False, storage_state=let_in(browser, place))
        writer = Walker(context.new_page(), place.url, database, to)
        for step in (titled, annotated, skipped, edited, redacted):
            writer.take(step.__name__, step, place)
        context.close()
    return walker.faults + writer.faults


def door(page: Page, browser: Browser, place: Place, state: Any) -> None:
    """The link worked once; its cookie is kept from scripts and other sites, and nothing is shown without it."""
    (cookie,) = state["cookies"]
    assert re.fullmatch("thinkback-[0-9a-f]{16}", cookie["name"]), cookie["name"]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict"), cookie
    answer = page.goto(place.url)
    assert answer is not None
    assert answer.headers["referrer-policy"] == "no-referrer", answer.headers
    assert "default-src 'none'" in answer.headers["content-security-policy"], answer.headers
    expect(page.locator("header.top")).to_contain_text("read-only")
    assert page.request.post(f"{place.url}/session/x/curate").status == 405
    stranger = new_context(browser)
    other = stranger.new_page()
    for address in (place.link, place.url):
        refused = other.goto(address)
        assert refused is not None
        assert refused.status == 403, address
        expect(other.locator("h1")).to_have_text("Nothing to see from here")
    stranger.close()


def listed(page: Page, place: Place) -> None:
    """Every session with all that the list tells of it."""
    page.goto(place.url)
    assert page.locator(".sessions th").all_inner_texts() == COLUMNS
    infos = place.store.sessions()
    expect(page.locator(".tally")).to_have_text(f"{len(infos)} sessions")
    row = page.get_by_role("row").filter(has_text="Why does `primes.py`")
    title, model, turns, tokens, share, cost, state, used = row.get_by_role("cell").all_inner_texts()
    assert "primes" in title
    assert "claude-sonnet-4-5" in model
    assert (turns.split()[0], int(re.sub(r"\D", "", tokens)) > 0, int(re.sub(r"\D", "", share)) > 0) == (
        "3",
        True,
        True,
    ), (turns, share)
    assert ("$" in cost, "completed", True) == (True, state, used != ""), (cost, state, used)
    unders = page.locator(".sessions .under").all_inner_texts()
    assert {"codex", "pi", "claude-code"} <= {word for under in unders for word in under.split(" · ")}, unders


def searched(page: Page, place: Place) -> None:
    """What is typed is found at once in thoughts and texts, marked, and leads to its block."""
    page.goto(place.url)
    page.keyboard.press("/")
    page.keyboard.type("sieve is the ans")
    place_of_it = page.locator(".said", has=page.locator(".kind-reasoning")).first
    expect(place_of_it.locator("mark", has_text="sieve")).to_be_visible()
    expect(page.locator(".sessions tbody tr")).to_have_count(1)
    place_of_it.click()
    expect(page.locator(":target")).to_contain_text("a sieve is the answer there")
    expect(page.locator(":target")).to_be_in_viewport()
    page.goto(f"{place.url}/search")
    page.get_by_label("in reasoning").check()
    page.locator("#q").press_sequentially("code word")
    expect(page.locator(".hits mark").first).to_be_visible()
    assert {"thought"} == {*page.locator(".hits .kind").all_text_contents()}  # also of those below the window


def narrowed(page: Page, place: Place) -> None:
    """Values beside the list narrow it."""
    page.goto(place.url)
    page.get_by_label("Program").select_option("codex")
    expect(page.locator(".tally")).to_contain_text(" of ")
    assert "program=codex" in page.url
    unders = page.locator(".sessions .under").all_inner_texts()
    assert unders, "no session is of codex"
    assert all(" · codex" in under for under in unders), unders


def moved(page: Page, place: Place) -> None:
    """By keys: down and up the list, into a conversation, a thought unfolded and folded, back up, and what keys do."""
    page.goto(place.url)
    for keys in ("jjk", "G", "gj"):
        page.keyboard.type(keys)
    expect(page.locator(".sessions tbody tr").nth(1).locator("a").first).to_be_focused()
    page.goto(f"{place.url}/?q=primes.py")
    page.keyboard.press("j")
    page.keyboard.press("l")
    page.wait_for_url("**/session/**")
    step = page.locator("article.entry-step").first
    folds = step.locator("details")
    assert folds.count(), "nothing is folded"
    page.keyboard.press("g")
    while not step.evaluate("each => each === document.activeElement"):
        page.keyboard.press("j")
    page.keyboard.press("l")
    expect(folds.first).to_have_attribute("open", "")
    page.keyboard.press("h")
    expect(folds.first).not_to_have_attribute("open", "")
    page.keyboard.press("h")
    page.wait_for_url(f"{place.url}/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("to the field for searching")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def read(page: Page, place: Place) -> None:
    """Turns and steps; thoughts folded, calls and results laid out, changes as such, code coloured, what each took."""
    page.goto(f"{place.url}/session/{place.store.find('primes').id}")
    expect(page.locator("h2.turn")).to_have_count(3)
    fold = page.locator(".part-thought details").first
    expect(fold.locator(".prose")).to_be_hidden()
    expect(fold.locator("summary")).to_have_text(re.compile(r"\d+ tokens"))
    fold.locator("summary").click()
    expect(fold.locator(".prose")).to_be_visible()
    expect(page.locator("pre.diff del").first).to_contain_text("range(2, n)")
    expect(page.locator("pre.diff ins").first).to_contain_text("isqrt")
    expect(page.locator("pre.json .k").first).to_have_text('"path"')
    expect(page.locator(".prose code .h-k").first).to_have_text("def")
    meta = page.locator(".meta").first
    for word in (re.compile(r"\d+ in"), re.compile(r"\d+ out"), re.compile(r"\d+ reasoning"), re.compile(r"\$")):
        expect(meta).to_contain_text(word)
    timeline = page.locator(".timeline").first
    expect(timeline.get_by_role("img")).to_be_visible()
    expect(timeline).to_contain_text(re.compile("thinking about .* answering about .* tools", re.DOTALL))


def linked(page: Page, place: Place) -> None:
    """Each block has a link that leads to it, also from elsewhere."""
    page.goto(f"{place.url}/session/{place.store.find('primes').id}")
    for part in ("call", "result", "text"):
        anchor = page.locator(f".part-{part} .anchor").last
        address = anchor.get_attribute("href") or ""
        anchor.click()
        page.wait_for_url(f"**#b-{address.rpartition('/')[2][:12]}")
        page.goto(f"{place.url}/keys")
        page.goto(place.url + address)
        expect(page.locator(":target")).to_be_in_viewport()


def copied(page: Page, place: Place) -> None:
    """A block as Markdown, a request as a command."""
    info = place.store.find("primes")
    page.goto(f"{place.url}/session/{info.id}")
    answer = page.locator(".part-text").first
    answer.hover()
    button = answer.get_by_role("button", name="Copy as Markdown")
    button.click()
    expect(button).to_have_text("copied")
    assert "```python\ndef is_prime(n):" in page.evaluate("navigator.clipboard.readText()")
    page.goto(f"{place.url}/session/{info.id}/request/{_requests(place, 'primes')[0].hash}")
    page.locator("summary", has_text="as curl").click()
    page.get_by_role("button", name="Copy the command").click()
    expect(page.get_by_role("button", name="Copy the command")).to_have_text("copied")
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith("curl http://127.0.0.1"), command
    assert "$ANTHROPIC_API_KEY" in command, command


def asked(page: Page, place: Place) -> None:
    """Why a block was held back, from the list; and what would go to another model beside it."""
    page.goto(place.url)
    follow(page, page.get_by_role("link", name="Why does `primes.py` take nine seconds"))
    follow(page, page.get_by_role("link", name="What went back, and why"))
    expect(page.locator(".hero h2")).to_contain_text("All 4 earlier thoughts were held back. 4 stand-ins went instead.")
    rows = page.locator(".ledger .of-thought")
    assert sum(thoughts_of(place.store, "primes")) - 1 == rows.count()
    expect(rows.first.locator(".verdict")).to_contain_text("Held back, a stand-in went")
    expect(rows.first.locator(".because").first).to_contain_text("minted in the anthropic dialect")
    expect(rows.first.locator(".rule").first).to_contain_text("rule ")
    expect(page.locator(".bytes")).to_contain_text("The rule")
    page.locator("#to").fill("anthropic/claude-sonnet-4-5")
    follow(page, page.get_by_role("button", name="Put it beside"))
    expect(page.locator(".hero")).to_have_count(2)
    expect(page.locator(".hero").last).to_contain_text("would be held back")
    expect(page.locator(".ledger .of-thought").first.locator(".cell")).to_have_count(2)


def sent(page: Page, place: Place) -> None:
    """Every request that can be built again is there as the bytes that were sent; one of what was erased says so."""
    for name in ("primes", "cipher", "card", "plan"):
        info, shown = place.store.find(name), 0
        for request in _requests(place, name):
            assert isinstance(request.value, Request)
            page.goto(f"{place.url}/session/{info.id}/request/{request.hash}")
            whole = page.get_by_role("link", name="The whole body")
            if name == "plan" and not whole.count():
                expect(page.locator(".hero")).to_contain_text("commits it was built from were erased since")
                continue
            expect(page.locator(".proof")).to_contain_text("Built again from the log")
            with page.expect_download() as download:
                whole.click()
            body = download.value.path().read_bytes()
            assert request.value.sent_digest == hashlib.sha256(body).hexdigest()
            shown += 1
        assert shown, f"no request of {name} can be built again"
    page.goto(f"{place.url}/session/{place.store.find('primes').id}/request/{_requests(place, 'primes')[2].hash}")
    expect(page.locator(".of-thought .verdict").first).to_contain_text("Went back as it was message 1")
    expect(page.locator(".bytes .controls")).to_contain_text("reasoning.effort")


def mended(page: Page, place: Place) -> None:
    """A refusal in the provider's words, and the request before and after side by side."""
    page.goto(f"{place.url}/session/{place.store.find('primes').id}/request/{_requests(place, 'primes')[4].hash}")
    expect(page.locator(".mending blockquote")).to_contain_text("Invalid `signature`")
    follow(page, page.get_by_role("link", name="Before and after, side by side"))
    before, after = page.locator(".ledger .of-thought").last.locator(".verdict").all_text_contents()
    assert ("Went back as it was" in before, "Held back" in after) == (True, True), (before, after)


def reported(page: Page, place: Place) -> None:
    """What the provider said it left out stands with the block, and what a person keeps away with the reason."""
    page.goto(f"{place.url}/session/{place.store.find('reported').id}/request/{_requests(place, 'reported')[-1].hash}")
    expect(page.locator(".of-thought .reported").first).to_contain_text(REPORT)
    expect(page.locator(".bytes")).to_contain_text("What the provider reported")
    page.goto(
        f"{place.url}/session/{place.store.find('card').id}/request/{_requests(place, 'card')[-1].hash}?only=held"
    )
    expect(page.locator(".ledger")).to_contain_text("it was only a joke")
    page.goto(f"{place.url}/session/{place.store.find('plan').id}")
    expect(page.locator(".mark", has_text="erased in part")).to_be_visible()
    expect(page.locator(".mark", has_text=re.compile("^edited$"))).to_be_visible()
    assert "47-11-0" not in page.content()


def branched(page: Page, place: Place) -> None:
    """Branches, forks, edits and checkpoints in one picture, and what two branches or commits say differently."""
    page.goto(f"{place.url}/session/{place.store.find('plan').id}/tree")
    expect(page.locator(".tree .lane")).to_have_count(3)
    assert [page.locator(f".tree .lane ~ .of-{what}").count() for what in ("edit", "checkpoint")] == [1, 1]
    expect(page.locator(".tree text", has_text="plan-2 / main")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="other")
    follow(page, row.get_by_role("link", name="compare"))
    alone = page.locator(".differences .of-thought.is-added")
    expect(alone).to_contain_text("Only on the other branch.")
    expect(page.locator(".differences .of-thought.is-removed")).to_contain_text("With the summary.")
    commits = [commit for commit in place.store.commits("plan") if commit.kind == "turn_ended"]
    page.get_by_label("From").fill(commits[2].hash[:16])
    page.get_by_label("to", exact=True).fill(commits[3].hash[:16])
    follow(page, page.get_by_role("button", name="Compare"))
    expect(page.locator(".differences .of-thought")).to_contain_text("Thought 3")
    page.get_by_label("From").fill("nowhere")
    follow(page, page.get_by_role("button", name="Compare"))
    expect(page.get_by_role("alert")).to_contain_text("nowhere")


def counted(page: Page, place: Place) -> None:
    """Numbers as pictures with tables below, narrowed by model, and the slowest turns with links."""
    page.goto(f"{place.url}/numbers?days=0")
    while page.get_by_text("are counted so far").count():
        page.reload()
    expect(page.locator(".chart svg")).to_be_visible()
    page.get_by_text("The same in numbers").click()
    expect(page.get_by_role("region", name=re.compile("By .*, in numbers")).locator("tbody tr").first).to_be_visible()
    for name in (
        "Effort",
        "What each model used",
        "What each project used",
        "From the question to the last response",
        "By what",
    ):
        expect(page.get_by_role("region", name=name).locator("tbody tr").first).to_be_visible()
    follow(page, page.get_by_role("link", name="gemini-2.5-pro"))
    expect(page.locator(".tally")).to_contain_text("Model gemini-2.5-pro")
    follow(page, page.get_by_role("region", name="From the question").get_by_role("link").first)
    expect(page.locator(":target .label")).to_have_text("You")


def paged(page: Page, place: Place) -> None:
    """A long conversation is there at any place of it in no time, a page at a time."""
    page.goto(place.url)  # the style and the script are those of the list
    # where more wants to run than there are cores, each has only its part of one
    waits = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    for commits in LONG:
        most = PAINT[commits] * waits
        taken = [painted(page, f"{place.url}/session/long-{commits}", 0)]
        for at in (0, commits // 2, commits - 300, 60):
            taken.append(painted(page, f"{place.url}/session/long-{commits}?at={at}", most))
        assert page.locator("article.entry").count() <= 40
        assert (
            page.locator("article.entry").first.evaluate("each => getComputedStyle(each).contentVisibility") == "auto"
        )
        told = ", ".join(f"{each:.0f}" for each in taken)
        print(f"{commits:,} commits: first paint after {told} ms (the first one reads the log; {waits:.1f} on a core)")
        assert taken[0] <= OPENED * waits, f"{commits} commits are open after {taken[0]:.0f} ms"
        assert max(taken[1:]) <= most, f"{commits} commits take {max(taken[1:]):.0f} ms, not {most:.0f}"


def painted(page: Page, address: str, most: float) -> float:
    """Milliseconds until the first paint: the least of some looks where one took longer than ``most``, as others may
    have had the machine.
    """
    taken: list[float] = []
    while not taken or (len(taken) < 3 and min(taken) > most > 0):
        page.goto(address)
        taken.append(first_paint(page))
    return min(taken)


def taken_in(page: Page, place: Place, session: str) -> None:
    """All that another program stored is there, and each thought of it has a verdict for any model."""
    info = place.store.find(session)
    commits = Counter(commit.kind for commit in place.store.commits(session))
    texts, withheld = thoughts_of(place.store, session)
    page.goto(f"{place.url}/session/{info.id}?at=0")
    shown: Counter[str] = Counter()
    while True:
        for what in (".part-thought details", ".withheld", ".part-call", ".part-result"):
            shown[what] += page.locator(what).count()
        later = page.locator("a[rel=next]").first
        if not later.count():
            break
        follow(page, later)
    assert (texts, withheld) == (shown[".part-thought details"], shown[".withheld"]), shown
    assert (commits["tool_call"], commits["tool_result"]) == (shown[".part-call"], shown[".part-result"]), shown
    page.goto(f"{place.url}/session/{info.id}/next?to={ELSEWHERE}&only=thoughts")
    rows = page.locator(".ledger .of-thought")
    assert texts + withheld == rows.count(), rows.count()
    verdicts = [" ".join(each.split()) for each in rows.locator(".verdict").all_text_contents()]
    assert all(re.match("Would (be held|go) back|Nothing to decide", verdict) for verdict in verdicts), verdicts


def exported(page: Page, place: Place, imported: Sequence[str], to: Path) -> None:
    """A session as one file that asks for nothing; reasoning where it was asked for, opaque values never."""
    address = page.context.new_page()
    asked_for: list[str] = []
    address.on("request", lambda request: asked_for.append(request.url))
    for session in ("primes", *imported[:3]):
        thoughts = [getattr(commit.value, "thought", "") for commit in place.store.commits(session)]
        secrets = opaque_values(place.store, session)
        for reasoning in (True, False):
            path = to / "walk.html"
            sharing.export(place.store, path, session=session, with_reasoning=reasoning)
            asked_for.clear()
            address.goto(path.resolve().as_uri())
            unfold(address)
            assert [path.resolve().as_uri()] == asked_for, asked_for
            written, seen = path.read_text(), address.locator("main").text_content() or ""
            assert not [value for value in secrets if value in written], "an opaque value is in a file"
            for text in filter(None, thoughts):
                first = " ".join(re.split(r"[*`\n]", text, maxsplit=1)[0].split())
                assert reasoning == (first in " ".join(seen.split())), (session, reasoning, first)
    address.close()


def titled(page: Page, place: Place) -> None:
    """A title, which the list has at once; the page says that it may change."""
    page.goto(f"{place.url}/session/{place.store.find('haiku').id}/curate")
    expect(page.locator("header.top")).to_contain_text("may be changed here")
    page.get_by_label("What lists call").fill("Three lines on caching")
    _through(page, "Title", "Set the title")
    page.goto(place.url)
    expect(page.get_by_role("link", name="Three lines on caching")).to_be_visible()


def annotated(page: Page, place: Place) -> None:
    """Tags and a note; a pin."""
    form = _form(page, place, "haiku")
    page.get_by_label("Add tags").fill("<b>short</b>, verse")
    page.get_by_label("A note for people").fill("asked again")
    _through(page, "Annotate", "Annotate it")
    page.goto(form)
    follow(page, page.get_by_role("button", name="Pin it, word for word"))
    follow(page, page.get_by_role("button", name="Pin it"))
    marks = page.locator(".mark").all_inner_texts()
    assert {"<b>short</b>", "verse", "asked again", "pinned"} <= set(marks), marks


def skipped(page: Page, place: Place) -> None:
    """What a skip voids is said before it is done."""
    _form(page, place, "haiku")
    page.get_by_label("Why").first.fill("too short")
    follow(page, page.get_by_role("button", name="Skip it"))
    expect(page.locator(".comes")).to_contain_text("voided and go")
    follow(page, page.get_by_role("button", name="Skip it"))
    expect(page.locator(".mark", has_text="too short")).to_be_visible()


def edited(page: Page, place: Place) -> None:
    """What an edit voids is said before it is done; what was there stays. A branch begins where it is said."""
    form = _form(page, place, "primes")
    page.get_by_label("What it is to say").fill("Said otherwise.")
    follow(page, page.get_by_role("form", name="Edit").get_by_role("button"))
    expect(page.locator(".comes .bad").first).to_contain_text("voided and go")
    follow(page, page.get_by_role("button", name="Edit it"))
    expect(page.locator(".part-text", has_text="Said otherwise.")).to_be_visible()
    expect(page.get_by_text("Before it was edited")).to_be_visible()
    page.goto(form)
    page.get_by_label("Name of a new branch").fill("aside")
    _through(page, "Branch", "Make the branch")
    assert "branch=aside" in page.url
    expect(page.get_by_role("navigation", name="Branches").get_by_role("link", name="aside")).to_be_visible()


def redacted(page: Page, place: Place) -> None:
    """What is taken out is gone from the page, and it says so."""
    _form(page, place, "oslo")
    page.get_by_label("Take out what").fill("Mild")
    _through(page, "Redact", "Erase it for good")
    expect(page.locator(".mark", has_text="erased in part")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Mild, and light")


def _form(page: Page, place: Place, session: str) -> str:
    """Go to the page of changes of the first answer of a session; its address."""
    page.goto(f"{place.url}/session/{place.store.find(session).id}")
    follow(page, page.get_by_role("link", name="Change Answer").first)
    return str(page.url)


def _through(page: Page, form: str, confirmed: str) -> None:
    """Send a form, then what it leads to."""
    follow(page, page.get_by_role("form", name=form).get_by_role("button"))
    follow(page, page.get_by_role("button", name=confirmed))


def _requests(place: Place, session: str) -> list[Any]:
    return [commit for commit in place.store.commits(session) if commit.kind == "request"]


# Whatever is taken out of a conversation that is open, but for the bar of a turn, which grows.
_REMOVED = """() => {
    window.removed = 0;
    new MutationObserver(all => all.forEach(each => each.removedNodes.forEach(node => {
        if (node.nodeType === 1 && !node.matches('.timeline')) window.removed += 1;
    }))).observe(document.getElementById('entries'), {childList: true, subtree: true});
}"""


def watch_gateway(browser: Browser, database: str, gateway: Gateway, to: Path) -> list[str]:
    """A conversation streams through a gateway while its page is open, in the gateway's viewer and in one's own."""
    ask = {"authorization": f"Bearer {gateway.key}"}
    assert gateway.house.talk(["An unkeptword?"], authorization=f"Bearer {gateway.quiet}").status == 200
    assert gateway.house.talk(["Why?"], **ask).status == 200
    with viewed(gateway.log) as own:
        contexts = [new_context(browser), new_context(browser, storage_state=let_in(browser, own))]
        walkers = [
            Walker(context.new_page(), url, f"{database}, {name}", to)
            for context, url, name in zip(contexts, (gateway.url, own.url), ("its viewer", "view"), strict=True)
        ]
        walkers[0].take("signed in", signed_in, gateway)
        said = [f"Said of <{question}>." for question in ("Why?", "And [hold] then?")]
        pages = [context.pages[0] for context in contexts]
        for walker, url in zip(walkers, (gateway.url, own.url), strict=True):
            walker.take("opened", opened, url)
        with ThreadPoolExecutor(1) as clients:
            turn = clients.submit(gateway.house.talk, ["Why?", "And [hold] then?"], said[:1], **ask)
            assert gateway.provider.held.acquire(timeout=PATIENCE)
            for walker in walkers:
                walker.take("under way", under_way)
            gateway.provider.release.set()
            assert said[1] == turn.result(PATIENCE).text
        for walker, page in zip(walkers, pages, strict=True):
            walker.take("grown", grown, said[1])
            walker.take("went back", followed_back, page is pages[0])
        with thinkback.open(gateway.log, rules={}, settings={}) as store:
            said_last = [
                commit
                for info in store.sessions()
                for commit in store.commits(info.name)
                if isinstance(commit.value, ThinkingBlock) and "hold" in commit.value.thought
            ]
            store.care.redact(said_last[0].hash, "then")
        walkers[0].take("signed out", signed_out)
        walkers[0].take("signed in again", signed_in, gateway)
        walkers[0].take("kept out", kept_out, gateway.url)
        for context in contexts:
            context.close()
    return [fault for walker in walkers for fault in walker.faults]


def signed_in(page: Page, gateway: Gateway) -> None:
    """With a key that has the right, and no other; it only looks."""
    page.goto(gateway.url)
    # the key is told to be wrong by the status of the page, which the console repeats
    for key in ("tb-none", gateway.blind):
        answer = page.request.post(
            f"{gateway.url}/sign-in", form={"key": key}, headers={"origin": gateway.url}, max_redirects=0
        )
        assert answer.status in (401, 403), answer.status
        assert 'role="alert"' in answer.text()
    page.get_by_label("A key of this gateway").fill(gateway.key)
    follow(page, page.get_by_role("button", name="Sign in"))
    expect(page.locator("h1")).to_have_text("Sessions")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict"), cookie
    expect(page.locator("header.top")).to_contain_text("read-only")


def opened(page: Page, url: str) -> None:
    """The conversation, found by what was thought in it, its first thought unfolded."""
    page.goto(url)
    page.keyboard.press("/")
    page.keyboard.type("thought of why")
    expect(page.locator(".said .kind-reasoning").first).to_be_visible()
    follow(page, page.locator(".sessions .title > a").first)
    expect(page.locator(".part-text")).to_contain_text("Said of <Why?>.")
    page.locator(".part-thought summary").click()
    page.evaluate(_REMOVED)


def under_way(page: Page) -> None:
    """While the provider answers nothing that is not stored is shown."""
    assert page.get_by_text("Said of <And").count() == 0


def grown(page: Page, said: str) -> None:
    """The turn was added, whole and once; nothing that was there was made anew."""
    expect(page.locator(".part-text").last).to_contain_text(said)
    fresh = page.locator(".part-thought").last
    fresh.locator("summary").click()
    expect(fresh.locator(".prose")).to_contain_text(thought("And [hold] then?"))
    ids = page.locator("article[id]").evaluate_all("all => all.map(each => each.id)")
    assert (len(ids), len(set(ids))) == (4, 4), ids
    assert page.evaluate("window.removed") == 0, "something was taken out of the page"
    expect(page.locator(".part-thought details").first).to_have_attribute("open", "")


def followed_back(page: Page, is_guest: bool) -> None:
    """What went back in a client's request, and what would go to another model."""
    follow(page, page.locator(".entry-step").last.get_by_role("link", name="What went back"))
    expect(page.locator(".proof")).to_contain_text("Built again from the log")
    expect(page.locator(".hero h2")).to_contain_text("The one earlier thought")
    expect(page.locator(".of-thought .because").first).not_to_be_empty()
    assert (0 if is_guest else 1) == page.get_by_text("as curl").count()
    page.locator("#to").fill("anthropic/claude-sonnet-4-5")
    follow(page, page.get_by_role("button", name="Put it beside"))
    expect(page.locator(".hero").last.locator("h2")).to_contain_text("would be held back")
    for tab in ("What would go next", "Branches", "Conversation"):
        follow(page, page.get_by_role("link", name=tab, exact=True))
        expect(page.locator(".tabs [aria-current]")).to_have_text(tab)


def kept_out(page: Page, url: str) -> None:
    """What recording left out, and what was erased, shows as such."""
    page.goto(url)
    ways = page.locator(".sessions .title > a").evaluate_all("all => all.map(each => each.href)")
    told = ""
    for way in ways:
        page.goto(way)
        told += page.locator("main").inner_text()
    assert ("not recorded" in told, "unkeptword" in told) == (True, False), told
    assert "erased in part" in told, told
    page.goto(f"{url}/numbers")
    expect(page.get_by_role("region", name="What each model used")).to_contain_text("deepseek-v4-pro")


def signed_out(page: Page) -> None:
    """Nothing is shown afterwards."""
    follow(page, page.get_by_role("button", name="Sign out"))
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
