"""A summary that a model writes: what it is asked, the shape its answer must have, and the text made of it.

Promises: an answer of another shape, one that says nothing, or one that lost what must survive is refused with the
reason. Must not: ask the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkback.errors import CompactionRefused
from thinkback.log.digest import Survivor, missing
from thinkback.model import canonical

SYSTEM = (
    "You write checkpoints of conversations. You get the transcript of a conversation between a user and an assistant "
    "that calls tools. Write down everything the assistant needs to go on without reading it: what the user wants and "
    "said how to do it, what was decided and why, what was done with which result, and what is left to do. Keep names, "
    "paths, numbers and error texts exactly. Do not answer the user, do not go on with the work, and do not invent "
    "anything. A word in square brackets at the beginning of an entry is the entry's reference. Of what the assistant "
    "thought, keep the reasons for what was decided, and what it found out that stands nowhere else."
)


class Summary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model must answer with: every field, and nothing else."""

    summary: str
    current_objective: str
    user_instructions: list[str]
    decisions: list[str]
    work_completed: list[str]
    open_tasks: list[str]
    files_touched: list[str]
    commands_and_evidence: list[str]
    risks: list[str]
    open_questions: list[str]


_TITLES = {
    "current_objective": "Objective",
    "user_instructions": "Instructions",
    "decisions": "Decisions",
    "work_completed": "Done",
    "open_tasks": "Still open",
    "files_touched": "Files",
    "commands_and_evidence": "Commands and evidence",
    "risks": "Risks",
    "open_questions": "Open questions",
}


def request(transcript: str, survivors: Sequence[Survivor]) -> str:
    """What the model is told to do with the transcript."""
    names = ", ".join(Summary.__struct_fields__)
    lines = [
        f"Answer with one JSON object and nothing else. Its members are {names}; summary and current_objective are "
        "texts, all others lists of texts. An empty list is right where there is nothing to say; summary must not be "
        "empty."
    ]
    if survivors:
        wanted = (f"- {survivor.ref}: {'; '.join(survivor.retain) or survivor.text}" for survivor in survivors)
        lines.append(
            "These are important. Repeat what is in quotation or behind the reference, and the reference with its "
            "brackets, in the member where it belongs:\n" + "\n".join(wanted)
        )
    return "\n\n".join([*lines, f"The transcript:\n\n{transcript}"])


def again(problem: str) -> str:
    """What the model is told when its answer was refused."""
    return f"That cannot be used: {problem}. Write the whole JSON object again, with that put right."


def read(answer: str, survivors: Sequence[Survivor]) -> str:
    """The text of a model's answer. Raises ``CompactionRefused`` with what is wrong with it."""
    source = answer[answer.find("{") : answer.rfind("}") + 1]
    try:
        found = canonical.decode(source, Summary)
    except msgspec.DecodeError as error:
        raise CompactionRefused(f"the answer is not the JSON object that was asked for ({error})") from None
    if not found.summary.strip():
        raise CompactionRefused("the summary is empty")
    return checked(_rendered(found), survivors)


def checked(text: str, survivors: Sequence[Survivor]) -> str:
    """``text``, if nothing is missing from it that must survive. Raises ``CompactionRefused``."""
    if not text.strip():
        raise CompactionRefused("the summary is empty", next_actions=("say what the summary stands for",))
    lost = missing(text, survivors)
    if lost:
        named = "; ".join(f'"{text}"' for text in lost)
        raise CompactionRefused(
            f"the summary lacks what must survive: {named}",
            details={"missing": lost},
            next_actions=("put these texts into it word for word", "or annotate what they are from as NORMAL"),
        )
    return text


def _rendered(found: Summary) -> str:
    sections = [found.summary.strip()]
    for name, title in _TITLES.items():
        said = getattr(found, name)
        lines = [line.strip() for line in ([said] if isinstance(said, str) else said) if line.strip()]
        if lines:
            sections.append("\n".join([f"{title}:", *(f"- {line}" for line in lines)]))
    return "\n\n".join(sections)
