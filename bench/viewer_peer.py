"""For ``bench.viewer`` in its peer's environment: logs as inspect-ai writes them, pages as a browser shows them.

``write DIRECTORY STEPS SESSIONS`` writes them. ``look CHROMIUM`` reads a JSON object a line: ``link``, followed once,
lets into a viewer; of ``url`` it answers with the seconds until ``text`` is visible and the bytes that came.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

_CAME = """() => performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
    .reduce((sum, each) => sum + each.transferSize, 0)"""


def question(turn: int) -> str:
    """What is asked."""
    return f"Question {turn}: what is the square of {turn}?"


def thought(turn: int) -> str:
    """What is thought of it."""
    return f"{turn} times {turn}, by parts. " * 6


def answer(turn: int) -> str:
    """What is answered."""
    return f"It is **{turn * turn}**."


def write(directory: Path, steps: int, sessions: int) -> None:
    """A log for each session, as an evaluation with one sample."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ContentReasoning, ContentText

    for name, turns in (
        ("long", range(steps)),
        *((f"session-{number}", range(number, number + 1)) for number in range(sessions)),
    ):
        messages: list[Any] = []
        for turn in turns:
            content = [ContentReasoning(reasoning=thought(turn)), ContentText(text=answer(turn))]
            messages += [ChatMessageUser(content=question(turn)), ChatMessageAssistant(content=content)]
        made = EvalSpec(
            created="2026-01-01T00:00:00+00:00",
            task=name,
            task_id=name,
            dataset=EvalDataset(samples=1),
            model="reasoner",
            config=EvalConfig(),
        )
        sample = EvalSample(id=1, epoch=1, input=name, target="", messages=messages)
        write_eval_log(EvalLog(status="success", eval=made, samples=[sample]), str(directory / f"{name}.eval"))


def look(chromium: str) -> None:
    """Until nothing comes any more; each page in a window of its own, with an empty cache."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        states: dict[str, Any] = {}
        for line in sys.stdin:
            wanted = json.loads(line)
            context = browser.new_context(storage_state=states.get(wanted["name"]))
            page = context.new_page()
            if "link" in wanted:
                page.goto(wanted["link"])
                states[wanted["name"]] = context.storage_state()
                told: dict[str, float] = {}
            else:
                begun = perf_counter()
                page.goto(wanted["url"], wait_until="commit")
                page.get_by_text(wanted["text"]).first.wait_for(timeout=120_000)
                told = {"seconds": perf_counter() - begun, "bytes": page.evaluate(_CAME)}
            context.close()
            print(json.dumps(told), flush=True)
        browser.close()


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        look(sys.argv[2])
