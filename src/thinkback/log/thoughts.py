"""Old thoughts in fewer words: which ones a model may shorten, what it is asked, and which of its forms are kept.

Promises: nothing of the last turns, nothing that is PINNED, IMPORTANT or SKIP, nothing that a summary stands for, and
nothing twice; an answer that is not about exactly the thoughts of the request is refused. Must not: ask the model, or
know what a request has of a thought.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from thinkback.errors import CompactionRefused
from thinkback.log import drafting
from thinkback.log.outline import Outline
from thinkback.model import canonical
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.commits import Draft, Priority

_UNTOUCHED = (Priority.SKIP, Priority.IMPORTANT)

LEAST_LENGTH = 200
"""Characters: a shorter thought stays as it is."""
EXPECTED_SHARE = 3
"""A shorter form is expected to have one character of so many."""
LEAST_SAVED = 0.05
"""A form, or a checkpoint, that saves a smaller part is not kept: what it leaves out is worth more."""

SYSTEM = (
    "You shorten notes. Each is what an assistant thought before it answered or called a tool. Rewrite each in as few "
    "words as keep what it found out, what it decided and why, what it ruled out and why, and what it left open. Keep "
    "names, paths, numbers and error texts exactly, and the language and the voice of the note. Leave out repetition, "
    "detours and plans that were carried out. Do not answer, judge or continue the notes, and do not invent anything."
)


class OldThought(NamedTuple):
    """A thought that may be shortened: the hash of its commit, and its text as it is now."""

    hash: str
    text: str


class ShortForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shorter form of the note of that number."""

    number: int
    text: str


class ShortForms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model must answer with: one form for each note, and nothing else."""

    notes: list[ShortForm]


def old_thoughts(outline: Outline, tail: int) -> Iterator[OldThought]:
    """Find the readable thoughts before the last ``tail`` turns that may be shortened, oldest first."""
    for piece in outline.pieces:
        if piece.kind != "response" or piece.turn >= outline.turns - tail or outline.is_inside(piece):
            continue
        curation, header = outline.curation, outline.commits[piece.at[0]]
        if Priority.PINNED in outline.priorities(piece) or curation.priority(header) in _UNTOUCHED:
            continue
        for commit in (outline.commits[at] for at in piece.at):
            value = curation.value(commit)
            if not isinstance(value, ThinkingBlock) or value.marker or len(value.thought) < LEAST_LENGTH:
                continue
            if curation.priority(commit) not in _UNTOUCHED and not curation.compaction_of(commit):
                yield OldThought(commit.hash, value.thought)


def batches(thoughts: Sequence[OldThought], size: int) -> Iterator[tuple[OldThought, ...]]:
    """Divide ``thoughts`` so that the texts of a request have ``size`` characters at most; a longer one goes alone."""
    batch: list[OldThought] = []
    for thought in thoughts:
        if batch and sum(len(each.text) for each in batch) + len(thought.text) > size:
            yield tuple(batch)
            batch = []
        batch.append(thought)
    if batch:
        yield tuple(batch)


def shortening_request(batch: Sequence[OldThought]) -> str:
    """Write what the model is told to do with ``batch``."""
    notes = [{"number": number, "text": thought.text} for number, thought in enumerate(batch, 1)]
    return (
        'Answer with one JSON object and nothing else: {"notes": [{"number": 1, "text": "..."}, ...]}, with the '
        f"shorter form of each note under its number.\n\nThe notes:\n\n{json.dumps(notes, ensure_ascii=False)}"
    )


def read_forms(answer: str, batch: Sequence[OldThought]) -> dict[str, str]:
    """Read the shorter form of each thought of ``batch``, by its hash. Raises ``CompactionRefused`` with the fault."""
    source = answer[answer.find("{") : answer.rfind("}") + 1]
    try:
        found = canonical.decode(source, ShortForms)
    except msgspec.DecodeError as error:
        raise CompactionRefused(f"the answer is not the JSON object that was asked for ({error})") from None
    forms = {form.number: form.text.strip() for form in found.notes}
    if len(found.notes) != len(forms) or forms.keys() != set(range(1, len(batch) + 1)):
        raise CompactionRefused(f"the answer must have each of the {len(batch)} notes once")
    if not all(forms.values()):
        raise CompactionRefused("the form of a note is empty")
    return {thought.hash: forms[number] for number, thought in enumerate(batch, 1)}


def gains(before: int, after: int) -> bool:
    """True if ``after`` saves enough of ``before``."""
    return after <= before * (1 - LEAST_SAVED)


def form_drafts(outline: Outline, forms: Mapping[str, str]) -> list[Draft]:
    """Make the edits that give thoughts, by hash, other texts."""
    return [drafting.edit(commit, forms[commit.hash]) for commit in outline.commits if commit.hash in forms]


def expected_forms(thoughts: Sequence[OldThought]) -> dict[str, str]:
    """Stand in for the forms that a model is still to write, by hash: texts as long as those are expected to be."""
    return {thought.hash: thought.text[: len(thought.text) // EXPECTED_SHARE].strip() or "." for thought in thoughts}
