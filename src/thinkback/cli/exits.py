"""Exit codes, in one place: the table that the help prints and that errors are looked up in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from thinkback.session.reply import Reply

FAILED = 1
NO_ANSWER = 6
DAMAGED = 7
BUSY = 8
INTERRUPTED = 130


class Exit(NamedTuple):
    """One exit code: which kinds of error lead to it, and what the help says of it."""

    code: int
    kinds: tuple[str, ...]
    meaning: str


EXITS = (
    Exit(0, (), "done"),
    Exit(
        FAILED,
        ("error",),
        "any other failure: a denied, capped or stalled turn, a question answered with no, an unexpected error",
    ),
    Exit(
        2,
        (
            *(
                "not-found",
                "erased",
                "setting",
                "budget",
                "rule-file",
                "pattern",
                "export-file",
                "tool",
                "tool-failed",
                "tool-server",
                "credential",
                "missing-package",
            ),
            *("branch", "open-turn", "conflict", "detached", "compaction", "id-taken", "file-taken", "veto", "refused"),
        ),
        "wrong usage; not found; an invalid setting, file, branch or key",
    ),
    Exit(3, ("provider", "wire"), "the provider returned an error or an unreadable response"),
    Exit(4, ("network", "timeout"), "the provider was unreachable or stopped responding"),
    Exit(
        5,
        ("replay", "unsupported", "context"),
        "nothing was sent: the target cannot take required reasoning or content",
    ),
    Exit(NO_ANSWER, (), "the model gave no answer: empty, a refusal, or only reasoning"),
    Exit(
        DAMAGED,
        ("store", "head-moved", "erased-since", "corrupt", "format-version"),
        "the log cannot be opened, or is damaged",
    ),
    Exit(BUSY, ("busy",), "another process is running a turn there: retry, --wait, or --take-over"),
    Exit(INTERRUPTED, (), "interrupted"),
)


def code_of(kind: str) -> int:
    """The exit code for an error's kind."""
    return next((row.code for row in EXITS if kind in row.kinds), FAILED)


def code_after(reply: Reply) -> int:
    """The exit code for a turn that came to its end: a cut answer is one as far as it goes."""
    is_cut = reply.outcome == "max_tokens" and bool(reply.text.strip() or reply.tool_calls)
    return NO_ANSWER if reply.ending and not is_cut else 0
