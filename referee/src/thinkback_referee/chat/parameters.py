"""Are the parameters beside the messages ones that the model takes while it thinks?"""

from __future__ import annotations

from ..jsons import as_object
from ..verdict import Verdict
from .profiles import Switch
from .refusals import refuse
from .request import Request

# Texts unconfirmed.
TWO_SWITCHES = "reasoning_format and include_reasoning are mutually exclusive"
NOT_RAW = "reasoning_format raw is not supported with tools or JSON mode"


def tools_unsupported(request: Request) -> Verdict | None:
    """Refuse tools at a model that has none."""
    profile = request.profile
    if request.tools and profile.tools_refused:
        return refuse(profile.host, profile.tools_refused.format(model=profile.model), "tools are not supported")
    text = profile.tools_refused_while_thinking
    if request.tools and request.thinks and text:
        return refuse(profile.host, text.format(model=profile.model), "tools while thinking")
    return None


def forced_choice(request: Request) -> Verdict | None:
    """Refuse a forced call where thinking does not go with it."""
    choice = request.body.get("tool_choice")
    kind = "specified" if isinstance(choice, dict) else choice
    text = request.profile.choices_refused.get(kind) if request.thinks and isinstance(kind, str) else None
    return refuse(request.profile.host, text, f"tool_choice {kind} while thinking") if text else None


def pinned_temperature(request: Request) -> Verdict | None:
    """Refuse a temperature other than the one that the thinking model is pinned to."""
    pinned = request.profile.temperature
    temperature = request.body.get("temperature")
    if not request.thinks or pinned is None or temperature is None or temperature == pinned:
        return None
    text = request.profile.host.bad_temperature.format(pinned=pinned, value=temperature)
    return refuse(request.profile.host, text, "temperature is pinned")


def unknown_parameter(request: Request) -> Verdict | None:
    """Refuse a parameter that this one model does not take, though others of its host do."""
    for name in sorted(request.profile.unknown_parameters & request.body.keys()):
        text = request.profile.host.unknown_parameter.format(name=name)
        return refuse(request.profile.host, text, f"unknown parameter {name}")
    return None


def bad_effort(request: Request) -> Verdict | None:
    """Refuse an effort that is not a bare string, or that the model does not list."""
    effort = request.body.get("reasoning_effort")
    allowed = request.profile.efforts
    if effort is None or (isinstance(effort, str) and (not allowed or effort in allowed)):
        return None
    listed = f", supported values: [{', '.join(allowed)}]" if allowed else ""
    text = request.profile.host.bad_effort.format(effort=effort, listed=listed)
    return refuse(request.profile.host, text, "bad reasoning_effort")


def bad_switch(request: Request) -> Verdict | None:
    """Refuse a ``thinking`` value without a known type, where the model has that switch."""
    thinking = request.body.get("thinking")
    if request.profile.switch is not Switch.THINKING or thinking is None:
        return None
    if as_object(thinking).get("type") in ("enabled", "disabled", "adaptive"):
        return None
    return refuse(request.profile.host, "thinking.type: unknown variant", "bad thinking.type")


def clashing_format(request: Request) -> Verdict | None:
    """Refuse ``reasoning_format`` where it clashes with its neighbours."""
    form = request.body.get("reasoning_format")
    if not request.profile.formats or form is None:
        return None
    host = request.profile.host
    if request.body.get("include_reasoning") is not None:
        return refuse(host, TWO_SWITCHES, "two reasoning switches")
    if form == "raw" and (request.tools or request.body.get("response_format") is not None):
        return refuse(host, NOT_RAW, "raw reasoning with tools")
    return None
