"""The judge of interactions: a request to a verdict. Pure; the first refusal counts.

What the Interactions API says to a thought that is missing or was altered is not known: that it refuses is the
referee's strictness, from "steps must be sent back in order and unmodified". All texts here are unconfirmed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ..gemini.ledger import octets
from ..gemini.profiles import LEVELS
from ..jsons import as_text, names
from ..verdict import Verdict, first
from .ledger import CALL, OUTPUT, RESULT, THOUGHT, Mint, Step, is_known, is_model, runs_of, text_of
from .request import Request

_BODY = names(
    "model agent input system_instruction tools response_format response_mime_type response_modalities stream store "
    "background generation_config agent_config previous_interaction_id service_tier cached_content"
)
_CONFIG = names(
    "temperature top_p top_k seed stop_sequences tool_choice thinking_level thinking_summaries max_output_tokens "
    "speech_config image_config presence_penalty frequency_penalty"
)
_SUMMARIES = ("auto", "none")
UNKNOWN_PARAMETER = "Unknown parameter '{name}'."
NO_INPUT = "input must not be empty."
UNKNOWN_STEP = "Unknown step type '{kind}' at input[{index}]."
BAD_LEVEL = "Thinking level {level} is not supported for this model."
BAD_SUMMARIES = "Invalid thinking_summaries '{value}'."
NOT_STORED = "previous_interaction_id cannot be used with store=false."
NOT_FOUND = "Interaction {id} not found."
OTHER_MODEL = "previous_interaction_id belongs to another model."
STRAY = "No function call found for call_id '{id}'."
UNANSWERED = "No function result found for call '{id}'."
LAST = "The last step must be user_input or function_result."
INVALID = "Invalid signature in step {index}."
MODIFIED = "Thought step {index} was modified."
MISSING = "A thought step is missing at step {index}."
REORDERED = "Steps are out of order at step {index}."
DUPLICATE = "Duplicate signature in step {index}."
OWN = (
    UNKNOWN_PARAMETER, NO_INPUT, UNKNOWN_STEP, BAD_LEVEL, BAD_SUMMARIES, NOT_STORED, NOT_FOUND, OTHER_MODEL, STRAY,
    UNANSWERED, LAST, INVALID, MODIFIED, MISSING, REORDERED, DUPLICATE,
)  # fmt: skip
# What tells a step of a response apart: its type, and what ties it.
Key: TypeAlias = tuple[str, bytes]


def refuse(message: str, reason: str, *, status: int = 400, code: str = "invalid_request") -> Verdict:
    """A refusal in the shape of this API."""
    return Verdict(status, {"error": {"message": message, "code": code}}, reason)


def judge(request: Request) -> Verdict:
    """The verdict on a request; reads the ledger and changes nothing."""
    return first(_faults(request))


def _faults(request: Request) -> Iterator[Verdict]:
    yield from _unknown(request)
    yield from _malformed(request)
    yield from _controls(request)
    yield from _previous(request)
    yield from _unpaired(request)
    yield from _changed(request)
    yield from _incomplete(request)
    yield from _repeated(request)


def _unknown(request: Request) -> Iterator[Verdict]:
    for place, members, known in (("", request.body, _BODY), ("generation_config.", request.config, _CONFIG)):
        for name in members:
            if name not in known:
                yield refuse(UNKNOWN_PARAMETER.format(name=f"{place}{name}"), f"unknown field {place}{name}")


def _malformed(request: Request) -> Iterator[Verdict]:
    if not request.given:
        yield refuse(NO_INPUT, "no input")
    for index, step in enumerate(request.given):
        kind = as_text(step.get("type"))
        if not is_known(kind):
            yield refuse(UNKNOWN_STEP.format(kind=kind, index=index), f"unknown step at input[{index}]")


def _controls(request: Request) -> Iterator[Verdict]:
    level = request.config.get("thinking_level")
    # The API lists all five; that models which refuse MINIMAL elsewhere refuse it here is an assumption.
    allowed = [name.lower() for name in (*(request.profile.levels or LEVELS), "XHIGH")]
    if level is not None and level not in allowed:
        yield refuse(BAD_LEVEL.format(level=level), "unsupported thinking level")
    summaries = request.config.get("thinking_summaries")
    if summaries is not None and summaries not in _SUMMARIES:
        yield refuse(BAD_SUMMARIES.format(value=summaries), "bad thinking_summaries")


def _previous(request: Request) -> Iterator[Verdict]:
    if not request.previous_id:
        return
    if not request.stored:
        # Stricter: what is not stored cannot be continued, so such a client loses its conversation here.
        yield refuse(NOT_STORED, "previous id without store")
    if request.previous is None:
        text = NOT_FOUND.format(id=request.previous_id)
        yield refuse(text, "unknown previous_interaction_id", status=404, code="not_found")
    elif request.previous.model != request.profile.reported:
        # Stricter: what a model change does to stored thoughts is not documented.
        yield refuse(OTHER_MODEL, "previous id of another model")


def _unpaired(request: Request) -> Iterator[Verdict]:
    """Refuse calls without their results directly after them, results without calls, and a model's last word."""
    called: list[str] = []
    for step in request.steps:
        if is_model(step):
            called += [as_text(step.get("id"))] if step.get("type") == CALL else []
        elif step.get("type") == RESULT:
            identifier = as_text(step.get("call_id"))
            if identifier not in called:
                yield refuse(STRAY.format(id=identifier), "answer without a call")
            called.remove(identifier)
        elif called:
            break
    if called:
        yield refuse(UNANSWERED.format(id=called[0]), "unanswered call")
    if is_model(request.steps[-1]):
        yield refuse(LAST, "the model ends")


def _changed(request: Request) -> Iterator[Verdict]:
    """Refuse thoughts that this model did not have, or that come back with another summary."""
    for index, step in enumerate(request.given):
        signature = as_text(step.get("signature"))
        if step.get("type") != THOUGHT and not signature:
            continue
        mints = [mint for mint in request.ledger.issued(signature) if mint.model == request.profile.reported]
        if not mints:
            what = "foreign" if request.ledger.issued(signature) else "changed"
            yield refuse(INVALID.format(index=index), f"{what} at input[{index}]")
        if not any(_same_thought(step, minted) for mint in mints for minted in mint.steps):
            yield refuse(MODIFIED.format(index=index), f"changed at input[{index}]")


def _incomplete(request: Request) -> Iterator[Verdict]:
    """Refuse a response that comes back without one of its thoughts, or with its steps in another order."""
    for run in runs_of(request.given):
        steps = [step for _, step in run]
        mints = request.ledger.matching(request.profile.reported, steps)
        known = [_order(mint.steps) for mint in (*mints, *_signed(request, steps))]
        if not mints or _is_joined(_order(steps), known):
            continue
        lacks = all(Counter(_thoughts(mint.steps)) - Counter(_thoughts(steps)) for mint in mints)
        text, what = (MISSING, "missing") if lacks else (REORDERED, "reordered")
        yield refuse(text.format(index=run[0][0]), f"{what} at input[{run[0][0]}]")


def _signed(request: Request, steps: Sequence[Step]) -> list[Mint]:
    """The responses of the model that thoughts of these steps are from."""
    signatures = [as_text(step.get("signature")) for step in steps if step.get("type") == THOUGHT]
    issued = (mint for signature in signatures for mint in request.ledger.issued(signature))
    return [mint for mint in issued if mint.model == request.profile.reported]


def _is_joined(steps: Sequence[Key], responses: Sequence[Sequence[Key]]) -> bool:
    """Whether steps are whole responses, one behind the other: the client may have left out what stood between."""
    if not steps:
        return True
    heads = (response for response in responses if response and list(steps[: len(response)]) == list(response))
    return any(_is_joined(steps[len(response) :], responses) for response in heads)


def _repeated(request: Request) -> Iterator[Verdict]:
    seen: Counter[bytes] = Counter()
    for index, step in enumerate(request.given):
        signature = as_text(step.get("signature"))
        seen[octets(signature)] += 1
        if signature and seen[octets(signature)] > len(request.ledger.issued(signature)):
            yield refuse(DUPLICATE.format(index=index), f"repeated at input[{index}]")


def _same_thought(step: Step, minted: Step) -> bool:
    same = octets(as_text(step.get("signature"))) == octets(as_text(minted.get("signature")))
    return same and text_of(step) == text_of(minted)


def _thoughts(steps: Sequence[Step]) -> list[bytes]:
    return [octets(as_text(step.get("signature"))) for step in steps if step.get("type") == THOUGHT]


def _order(steps: Sequence[Step]) -> list[Key]:
    """What tells the steps of a response apart, in their order; neighbouring texts are one."""
    keys: list[Key] = []
    for step in steps:
        kind = as_text(step.get("type"))
        tied = step.get("signature") if kind == THOUGHT else step.get("id")
        key = (kind, octets(as_text(tied)))
        if kind != OUTPUT or keys[-1:] != [key]:
            keys.append(key)
    return keys
