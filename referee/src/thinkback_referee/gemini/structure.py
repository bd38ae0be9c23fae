"""Is the conversation well formed? Roles, parts, and that every call is answered once, directly after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..jsons import as_text
from ..verdict import Verdict
from .errors import refuse
from .request import Content, Part, Request
from .schema import DATA

NO_CONTENTS = "* GenerateContentRequest.contents: contents is not specified\n"
NO_PARTS = "* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n"
NO_DATA = (
    "* GenerateContentRequest.contents[{index}].parts[{part}].data: required oneof field 'data' must have one "
    "initialized field\n"
)
BAD_ROLE = "Please use a valid role: user, model."
COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
CALL_TURN = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
ANSWER_TURN = "Please ensure that function response turn comes immediately after a function call turn."
LAST = "Please ensure that multiturn requests end with a user turn or a function response turn."  # text unconfirmed
WRONG_ID = (
    "Function response {name} `{value}` does not match a function call of the function call turn."  # text unconfirmed
)

Call = Mapping[str, object]


def malformed(request: Request) -> Verdict | None:
    """Refuse contents without parts, parts without data or with two kinds of it, and roles that do not exist."""
    if not request.contents:
        return refuse(NO_CONTENTS, "no contents")
    for content in request.contents:
        if content.role not in ("user", "model", "function") and (content.role or request.host.needs_role):
            return refuse(BAD_ROLE, f"bad role at contents[{content.index}]")
        if not content.parts:
            return refuse(NO_PARTS.format(index=content.index), f"no parts at contents[{content.index}]")
        for part in content.parts:
            if (fault := _part_fault(content, part)) is not None:
                return fault
    return None


def unpaired(request: Request) -> Verdict | None:
    """Refuse calls without their answers directly after them, answers without calls, and a model's last word.

    Contents of the model in a row are one call turn, as recorded; answers must come in one content.
    """
    called: list[Call] = []
    for content in request.contents:
        if content.role == "model":
            if content.calls and not content.index:
                return refuse(CALL_TURN, "call before any user turn")
            called += [call for _, call in content.calls]
            continue
        if (fault := _answer_fault(request, called, content)) is not None:
            return fault
        called = []
    last = request.contents[-1]
    if last.role == "model":
        place = f"contents[{last.index}]"
        return refuse(COUNT, f"unanswered call at {place}") if called else refuse(LAST, f"model ends at {place}")
    return None


def _part_fault(content: Content, part: Part) -> Verdict | None:
    place = f"contents[{content.index}].parts[{part.index}]"
    kinds = [name for name in DATA if name in part.raw]
    if len(kinds) > 1:
        text = f"Invalid value at '{place}' (oneof), oneof field 'data' is already set. Cannot set '{kinds[1]}'"
        return refuse(text, f"two kinds of data at {place}")
    # A part that is nothing but a signature was accepted in recordings.
    if not kinds and not part.signature:
        return refuse(NO_DATA.format(index=content.index, part=part.index), f"no data at {place}")
    if part.call is not None and content.role != "model":
        return refuse(CALL_TURN, f"misplaced call at {place}")
    if part.answer is not None and content.role == "model":
        return refuse(ANSWER_TURN, f"misplaced answer at {place}")
    return None


def _answer_fault(request: Request, called: list[Call], content: Content) -> Verdict | None:
    if content.answers and not called:
        return refuse(ANSWER_TURN, f"answer without a call at contents[{content.index}]")
    if len(content.answers) != len(called) and (content.answers or request.profile.validates):
        # 2.5 took a call whose result came as text; it is recorded.
        return refuse(COUNT, f"unanswered call at contents[{content.index - 1}]")
    # Ids decide where the calls have them, names where not.
    by = "id" if all(as_text(call.get("id")) for call in called) else "name"
    wanted = Counter(as_text(call.get(by)) for call in called)
    for answer in content.answers:
        found = as_text(answer.get(by))
        if not wanted[found]:
            return refuse(WRONG_ID.format(name=by, value=found), f"answer without a call at contents[{content.index}]")
        wanted[found] -= 1
    return None
