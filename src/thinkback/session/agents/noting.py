"""A tool by which the model itself puts a note of its reasoning into the log."""

from __future__ import annotations

from thinkback.drive.tools import ToolOutput
from thinkback.errors import ToolFailed
from thinkback.log import drafting
from thinkback.model.commits import Draft

# Where such a note says that it is from.
COMMIT_REASONING = "commit_reasoning"


def commit_reasoning(text: str) -> ToolOutput:
    """Keep a note of your reasoning in the log of this conversation: why something was decided, what was ruled out. It
    is for people, who read it and search for it.
    """
    if not text.strip():
        raise ToolFailed("text is empty", next_actions=("Say what is to be kept.",))
    # Stored in one step with the result, so that no call is ever parted from what answers it.
    return ToolOutput("Kept.", notes=(Draft("reasoning", drafting.thought(text, COMMIT_REASONING)),))
