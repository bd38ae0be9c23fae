"""What a person said in a session, and what was asked in their name of a model that had only thought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from thinkback.model import canonical
from thinkback.model.curation import Curation
from thinkback.session.retry_reasoning_only import MARK

if TYPE_CHECKING:
    from thinkback.model.commits import Commit


def messages(commits: Sequence[Commit], curation: Curation) -> list[Commit]:
    """The person's messages among ``commits``, oldest first; edits of them are in ``curation``."""
    return [
        commit for commit in commits if commit.kind == "user" and not commit.edit and not is_automatic(commit, curation)
    ]


def is_automatic(commit: Commit, curation: Curation) -> bool:
    """Whether a message asked a model to go on."""
    metadata = curation.mark(commit.hash).metadata
    try:
        return bool(metadata) and canonical.decode(metadata) == MARK
    except msgspec.DecodeError:
        return False
