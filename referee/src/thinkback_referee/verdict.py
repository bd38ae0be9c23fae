"""The referee's verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .jsons import as_list, as_object, as_text, strict_loads


@dataclass(frozen=True, slots=True)
class Verdict:
    """Accepted, or answered at once with this status and body: a refusal in the provider's words, a list of models.

    ``reason`` is the referee's own short statement for people and tests ("changed at messages[3]"); it travels in the
    ``x-referee`` header and is empty when the request was accepted.
    """

    status: int = 200
    body: object = None
    reason: str = ""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the request may be answered."""
        return self.status < 400

    @property
    def message(self) -> str:
        """The provider's sentence, wherever its error shape keeps it."""
        # Google answers some requests with a list of one error.
        listed = as_list(self.body)
        body = as_object(listed[0] if listed else self.body)
        detail = body.get("detail")
        return (
            as_text(as_object(body.get("error")).get("message"))
            or as_text(body.get("error"))
            or as_text(body.get("message"))
            or as_text(detail)
            or "; ".join(as_text(as_object(entry).get("msg")) for entry in as_list(detail))
        )

    @property
    def upstream(self) -> str:
        """The sentence of the model's own provider, where a router passes it on inside its own."""
        metadata = as_object(as_object(as_object(self.body).get("error")).get("metadata"))
        raw = as_text(metadata.get("raw"))
        return as_text(as_object(as_object(strict_loads(raw.encode())).get("error")).get("message")) if raw else ""


ACCEPTED = Verdict()


def first(faults: Iterable[Verdict]) -> Verdict:
    """The first refusal, else acceptance.

    No further fault is asked for, so that a check may rely on those before it.
    """
    return next(iter(faults), ACCEPTED)
