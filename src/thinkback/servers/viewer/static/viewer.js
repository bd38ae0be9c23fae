// The viewer's one script. Pages are whole without it: it lets an open conversation grow, and moves by keys.
"use strict";
(() => {
  const one = (selector, from = document) => from.querySelector(selector);
  const byId = (id) => document.getElementById(id);

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
      for (const node of [...made.content.children]) {
        if (node.id && byId(node.id)) continue; // it came twice
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

  const entries = one("#entries[data-live]");
  if (entries) follow(entries);
})();
