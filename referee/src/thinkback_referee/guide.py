"""The guide: what is said to a person who tries a client without a key, whatever is asked.

Promises: each turn thinks, calls one tool if one is offered that looks something up, and says that no model answers.
Which step comes next follows from the request alone, so that a turn that broke off puts nothing out of order.
"""

from __future__ import annotations

from .house import looks_up, memory, think
from .persona import View
from .script import Call, Step
from .subjects import fill_arguments

WHAT = "This is the referee, a stand-in for a provider. **It is not a model**, and gives this answer to any question."
_BACK = """\
The provider that it plays refuses a request that lacks the reasoning of the turn under way. The notes of the thoughts \
above came back with this request: {notes}."""
_FORGOTTEN = "No earlier thought came back with this request."


def guide_step(view: View, seed: int = 0) -> Step:
    """The next response of the guide."""
    tools = [tool for tool in view.tools if looks_up(tool)]
    if tools and not view.rounds and view.choice != "none":
        # a directory is what every place has: a tool that lists it is shown at its best
        tool = min(tools, key=lambda one: "list" not in one.name.lower())
        call = Call(tool.name, fill_arguments(tool.parameters, "."))
        thought = f"Somebody tries this client. To show a call of a tool, I take {call.name}."
        return Step(reasoning=think(view, seed, view.rounds, thought), tool_calls=[call])
    came = f"{view.results[-1][0] or 'The tool'} has answered. " if view.results else ""
    thought = f"{came}I say what I am, and whether my notes came back."
    notes = memory(view, seed)
    told = _BACK.format(notes=notes) if view.notes else _FORGOTTEN
    return Step(reasoning=think(view, seed, view.steps, thought), text=f"{WHAT}\n\n{told}")
