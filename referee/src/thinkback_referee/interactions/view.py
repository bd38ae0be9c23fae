"""An interaction as the house model sees it, with what the server kept."""

from __future__ import annotations

from collections.abc import Mapping

from ..jsons import as_object, as_text, compact
from ..persona import OfferedTool, View
from .request import Request
from .steps import CALL, THOUGHT, USER, Step, is_model, runs_of, text_of


def view_of(request: Request) -> View:
    """The steps, with the thoughts behind their signatures."""
    runs = runs_of(request.open_turn)
    return View(
        asked=text_of(request.steps[request.opening]) if request.opening >= 0 else "",
        turn=max(1, sum(step.get("type") == USER for step in request.steps)),
        steps=len(runs),
        rounds=sum(any(step.get("type") == CALL for _, step in run) for run in runs),
        tools=tuple(_offered(function) for function in request.functions),
        choice=_choice(request.config.get("tool_choice")),
        thinks=request.profile.thinks,
        results=tuple(_result(step) for step in request.results),
        notes=tuple(note for step in request.steps if step.get("type") == THOUGHT for note in _notes(request, step)),
        readable=any(is_model(step) for step in request.steps),
        began=bool(runs),
    )


def words_of(request: Request) -> list[str]:
    """The prompt as words."""
    head = [request.body.get("system_instruction"), request.body.get("tools")]
    words = [word for value in head if value for word in compact(value).split()]
    for step in request.steps:
        shown = text_of(step) if step.get("type") in (USER, "model_output") else ""
        told = "" if shown or step.get("type") == THOUGHT else compact(step)
        words += [f"<{step.get('type')}>", *shown.split(), *told.split()]
    return words


def _notes(request: Request, step: Step) -> list[str]:
    mints = request.ledger.issued(as_text(step.get("signature")))
    return [mint.thought for mint in mints if mint.thought]


def _offered(function: Mapping[str, object]) -> OfferedTool:
    return OfferedTool(
        as_text(function.get("name")), as_text(function.get("description")), as_object(function.get("parameters"))
    )


def _choice(choice: object) -> str:
    if isinstance(choice, str):
        return "none" if choice == "none" else ""
    allowed = as_object(as_object(choice).get("allowed_tools")).get("tools")
    return as_text(allowed[0]) if isinstance(allowed, list) and allowed else ""


def _result(step: Step) -> tuple[str, str]:
    held = step.get("result")
    return as_text(step.get("name")), held if isinstance(held, str) else compact(held)
