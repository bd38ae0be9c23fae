// The viewer's one script. Pages are whole without it: it lets an open conversation grow, and moves by keys.
"use strict";
(() => {
  const one = (selector, from = document) => from.querySelector(selector);
  const byId = (id) => document.getElementById(id);

  // Times of pages are UTC; whoever has the script reads them where they are, with UTC in the title.
  const LOCAL = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
  function localize(within) {
    for (const each of within.querySelectorAll("time[datetime]")) {
      const here = LOCAL.format(new Date(each.dateTime));
      const utc = [each.textContent, each.title].find((text) => text.trim().endsWith("UTC"));
      if (!utc) continue;
      if (utc === each.textContent) each.textContent = here;
      each.title = utc === each.title ? `${here} (${utc})` : utc;
    }
  }

  // A conversation that is written at this moment: pieces come as the page would have them, and are only added.
  function follow(entries) {
    const status = byId("live");
    const address = new URL(entries.dataset.live, location.href);
    let source = null;
    let over = false;

    function say(text, again) {
      status.textContent = text;
      if (again) {
        const link = document.createElement("a");
        link.href = location.href.split("#")[0];
        link.textContent = "load the page again";
        status.append(" ", link);
      }
    }

    function add(html) {
      const page = document.documentElement;
      const atEnd = window.innerHeight + window.scrollY >= page.scrollHeight - 160;
      const made = document.createElement("template");
      made.innerHTML = html;
      localize(made.content);
      for (const node of [...made.content.children]) {
        const there = node.id && byId(node.id);
        if (node.dataset.again !== undefined) there?.replaceWith(node);
        if (there || node.dataset.again !== undefined) continue; // it came twice
        const after = node.dataset.after;
        delete node.dataset.after;
        node.classList.add("added");
        if (after === undefined) {
          one(".empty", entries)?.remove();
          entries.append(node);
          continue;
        }
        const place = byId(after);
        if (place?.matches("article")) one(".parts", place).append(node);
        else place?.after(node); // else it is on a page before this one
      }
      if (atEnd) window.scrollTo(0, page.scrollHeight);
    }

    const close = () => {
      source?.close();
      source = null;
    };

    function open() {
      if (source || over || document.hidden) return;
      source = new EventSource(address);
      source.addEventListener("entry", (event) => add(event.data));
      source.addEventListener("part", (event) => add(event.data));
      source.addEventListener("here", (event) => address.searchParams.set("after", event.lastEventId));
      source.addEventListener("state", (event) => {
        if (event.data === "running") say("A turn is under way; what comes of it appears here.");
        else say(event.data === "failed" ? "The log does not answer at this moment." : "");
        status.classList.toggle("running", event.data === "running");
      });
      source.addEventListener("stale", () => {
        over = true;
        close();
        say("Something above is not as it was:", true);
      });
      source.addEventListener("error", () => {
        if (source?.readyState !== EventSource.CLOSED) return; // it asks again by itself
        close();
        setTimeout(open, 10000);
      });
    }

    // A browser has few connections to a host: pages that nobody sees take none.
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", open);
    open();
  }

  // A form that answers while one types: only its results are replaced, by those of the last word.
  function answer(form) {
    const results = byId(form.dataset.typed);
    let waiting = 0;
    let again = 0;
    let asked = null;

    async function ask() {
      const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
      asked?.abort();
      clearTimeout(again);
      asked = new AbortController();
      const signal = asked.signal;
      history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
      query.set("part", "1");
      try {
        const reply = await fetch(`${form.action}?${query}`, { signal });
        const html = await reply.text();
        if (signal.aborted || !reply.ok) return;
        results.innerHTML = html;
        localize(results);
        askAgain();
      } catch (error) {
        if (error.name !== "AbortError") form.submit();
      }
    }

    // While the index of words is filled its results ask for themselves again.
    function askAgain() {
      const after = one("[data-again-in]", results)?.dataset.againIn;
      clearTimeout(again);
      if (after !== undefined) again = setTimeout(ask, after * 1000);
    }

    askAgain();
    form.addEventListener("input", (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(ask, event.target.type === "search" ? 180 : 0);
    });
  }

  // Moving by keys: what can be moved to are rows, places, messages.
  const ITEMS = ".sessions tbody tr, .hits li, article.entry, .ledger article";
  const isOn = () => localStorage.getItem("keys") !== "off";
  let at = null;

  function current() {
    const focused = document.activeElement?.closest(ITEMS);
    if (focused) return focused;
    return at?.isConnected ? at : null;
  }

  function moveTo(item) {
    if (!item) return;
    at = item;
    const link = one("a[href^='/session/']", item);
    const target = item.matches("article") ? item : link ?? item;
    if (target === item) item.tabIndex = -1;
    target.focus({ preventScroll: true, focusVisible: true });
    item.scrollIntoView({ block: "nearest" });
  }

  function step(by) {
    const items = [...document.querySelectorAll(ITEMS)];
    const now = current();
    let next = now ? items.indexOf(now) + by : -1;
    if (!now) {
      // from what is seen on
      next = items.findIndex((item) => item.getBoundingClientRect().top >= 0);
      if (next < 0) next = items.length - 1;
    }
    moveTo(items[Math.min(Math.max(next, 0), items.length - 1)]);
  }

  const unfolded = (item, open) => [...item.querySelectorAll("details")].filter((each) => each.open === open);

  function inside() {
    const item = current();
    if (!item) return;
    const folds = unfolded(item, false);
    if (item.matches("article") && folds.length) for (const each of folds) each.open = true;
    else one("a[href^='/session/']:not(.anchor)", item)?.click();
  }

  function outside() {
    const item = current();
    const folds = item ? unfolded(item, true) : [];
    if (folds.length) for (const each of folds) each.open = false;
    else if (document.body.dataset.up) location.href = document.body.dataset.up;
  }

  const dialog = byId("keys");

  function search() {
    const field = byId("q");
    if (!field) location.href = "/search";
    field?.focus();
    field?.select();
  }

  const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    l: inside,
    h: outside,
    g: () => moveTo(one(ITEMS)),
    G: () => moveTo([...document.querySelectorAll(ITEMS)].at(-1)),
    "/": search,
    "?": () => dialog.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const isWriting = event.target.closest?.("input, textarea, select, [contenteditable], dialog");
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isWriting) return;
    if (!Object.hasOwn(KEYS, event.key) || !isOn()) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  byId("keys-link").addEventListener("click", (event) => {
    event.preventDefault();
    dialog.showModal();
  });
  byId("keys-on").checked = isOn();
  byId("keys-on").addEventListener("change", (event) => localStorage.setItem("keys", event.target.checked ? "on" : "off"));

  // Copying: what is pointed at, or moved to, gets a button.
  async function copy(button, text) {
    try {
      await navigator.clipboard.writeText(await text());
      button.textContent = "copied";
    } catch {
      button.textContent = "not copied";
    }
    setTimeout(() => (button.textContent = "copy"), 1600);
  }

  function offer(name, text) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.setAttribute("aria-label", name);
    button.addEventListener("click", () => copy(button, text));
    return button;
  }

  function offerPart(event) {
    const part = event.target.closest?.(".part");
    const anchor = part && one(".anchor", part);
    if (!anchor || one(".copy", part)) return;
    const address = `${anchor.href.replace("/commit/", "/block/")}/markdown`;
    anchor.before(offer("Copy as Markdown", async () => (await fetch(address)).text()));
  }
  for (const name of ["pointerover", "focusin"]) document.addEventListener(name, offerPart);
  for (const each of document.querySelectorAll("[data-copy]"))
    each.after(offer("Copy the command", async () => each.textContent));

  localize(document);
  for (const form of document.querySelectorAll("form[data-typed]")) answer(form);
  const entries = one("#entries[data-live]");
  if (entries) follow(entries);
})();
