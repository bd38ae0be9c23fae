"""What the gateway refuses on its own account: a status, a code for programs, and a sentence that a client may read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from thinkback.errors import ThinkbackError


class Refused(ThinkbackError):
    """A request that the gateway does not serve. The message is for clients: no key, no content, no name of a file.

    ``code`` is a stable word for programs; ``retry_after`` is in seconds, ``None`` where to try again is of no use.
    """

    kind: ClassVar[str] = "refused"

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after: float | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, details=details)
        self.status, self.code, self.retry_after = status, code, retry_after
