"""What a host did in the experiments, as values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkback.model.blocks import Block, ThinkingBlock, ToolCall
from thinkback.model.rule import Form
from thinkback.turn.probing.edits import opaque_of
from thinkback.wire.registry import dialect

_DETAILS, _CONTENT = "reasoning_details", "content"


class Outcome(msgspec.Struct, frozen=True):
    """What came of one experiment. ``input`` is how many tokens of input the host counted."""

    name: str
    says: str
    accepted: bool = True
    status: int = 200
    text: str = ""
    input: int | None = None


class Findings(msgspec.Struct, frozen=True):
    """What the host did. ``form`` and ``field`` are how reasoning came; ``kinds`` the wire types of signed thoughts.

    ``signed_calls``: calls carried a signature; ``opaque``: something did. ``called``: the model called the tool.
    ``summary`` says in words what came.
    """

    form: Form
    field: str = ""
    kinds: tuple[str, ...] = ()
    signed_calls: bool = False
    opaque: bool = False
    called: bool = False
    summary: str = ""
    outcomes: dict[str, Outcome] = {}

    def accepted(self, name: str) -> bool | None:
        """Whether an experiment was accepted; ``None`` where it was not made."""
        found = self.outcomes.get(name)
        return None if found is None else found.accepted


def findings_of(blocks: Sequence[Block], spoken: str) -> Findings:
    """What the first answer shows: how reasoning comes."""
    form, field = form_of(blocks, spoken)
    signed = [block for block in blocks if opaque_of((block,))]
    kinds = {block.source_field for block in signed if isinstance(block, ThinkingBlock)}
    return Findings(
        form=form,
        field=field,
        kinds=tuple(sorted(kinds - {""})),
        signed_calls=any(isinstance(block, ToolCall) for block in signed),
        opaque=signed != [],
        called=any(isinstance(block, ToolCall) for block in blocks),
        summary=_summary(form, field, signed),
    )


def form_of(blocks: Sequence[Block], spoken: str) -> tuple[Form, str]:
    """The form in which reasoning came, and the field where that has a name."""
    thoughts = [block for block in blocks if isinstance(block, ThinkingBlock) and not block.marker]
    elsewhere = any(opaque_of((block,)) for block in blocks if not isinstance(block, ThinkingBlock))
    if not dialect(spoken).reasoning_by_host or elsewhere:
        return ("native" if thoughts or elsewhere else "none"), ""
    fields = [block.source_field for block in thoughts]
    named = [field for field in fields if field not in (_DETAILS, _CONTENT)]
    if _DETAILS in fields:
        return "details", ""
    if named:
        return "field", named[0]
    return ("tags" if fields else "none"), ""


def _summary(form: Form, field: str, signed: Sequence[Block]) -> str:
    if form == "none":
        return "no reasoning came"
    came = {"field": f"in {field}", "details": "in reasoning_details", "tags": "as tags in content"}
    places = {"thoughts" if isinstance(block, ThinkingBlock) else "calls or texts" for block in signed}
    behind = f", opaque values on {' and '.join(sorted(places))}" if places else ", nothing opaque"
    return f"reasoning came {came.get(form, 'as blocks of the dialect')}{behind}"
