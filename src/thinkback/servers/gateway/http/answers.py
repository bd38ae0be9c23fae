"""Whole responses of the server's own, errors in the words of the client's dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from thinkback.wire.registry import front as front_of
from thinkback.wire.writing import Problem


class Answer(NamedTuple):
    """A whole response of the server's own."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def answer_of(front: str, problem: Problem, retry_after: float | None = None) -> Answer:
    """``problem`` as a response in the dialect ``front``."""
    headers = {"content-type": "application/json"}
    if retry_after is not None:
        headers["retry-after"] = str(max(1, round(retry_after + 0.499)))
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    return Answer(problem.status, headers, front_of(front).write_error(problem))
