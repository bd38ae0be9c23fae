"""The input of an interaction as a flat list of steps, however the client wrote it.

A string, a content, a list of contents and a list of steps all mean steps. Function results may stand inside a user's
content, as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..jsons import as_list, as_object, as_text

Step = Mapping[str, object]

THOUGHT = "thought"
CALL = "function_call"
RESULT = "function_result"
USER = "user_input"
OUTPUT = "model_output"
_STEPS = frozenset({THOUGHT, CALL, RESULT, USER, OUTPUT})
_CONTENTS = frozenset({"text", "image", "audio", "video", "document"})


def steps_of(given: object) -> list[Step]:
    """The input as steps."""
    if isinstance(given, str):
        return [{"type": USER, "content": [{"type": "text", "text": given}]}]
    listed = given if isinstance(given, list) else [given]
    items = [as_object(item) for item in listed]
    if items and all(item.get("type") in _CONTENTS for item in items):
        return [{"type": USER, "content": listed}]
    return [step for item in items for step in _opened(item)]


def is_known(kind: str) -> bool:
    """Whether a step may have this type; those of the server's own tools end in ``_call`` and ``_result``."""
    return kind in _STEPS or kind.endswith(("_call", "_result"))


def is_model(step: Step) -> bool:
    """Whether the model made the step."""
    return step.get("type") not in (USER, RESULT)


def runs_of(steps: Sequence[Step]) -> list[list[tuple[int, Step]]]:
    """The model's steps, response by response, with their places."""
    runs: list[list[tuple[int, Step]]] = []
    fresh = True
    for index, step in enumerate(steps):
        if not is_model(step):
            fresh = True
            continue
        if fresh:
            runs.append([])
        runs[-1].append((index, step))
        fresh = False
    return runs


def text_of(step: Step) -> str:
    """The visible text of a step, or the summary of a thought."""
    held = step.get("summary") if step.get("type") == THOUGHT else step.get("content")
    return "".join(as_text(as_object(item).get("text")) for item in as_list(held))


def _opened(step: Step) -> Iterator[Step]:
    if step.get("type") != USER:
        yield step
        return
    contents = [as_object(item) for item in as_list(step.get("content"))]
    yield from (item for item in contents if item.get("type") == RESULT)
    rest = [item for item in contents if item.get("type") != RESULT]
    if rest:
        yield {**step, "content": rest}
    elif not contents:
        yield step
