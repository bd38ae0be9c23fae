"""Refusals as AWS words and frames them: a message, and the name of the exception in a header."""

from __future__ import annotations

from ..verdict import Verdict

VALIDATION = "ValidationException"


def refuse(message: str, reason: str, *, status: int = 400, kind: str = VALIDATION) -> Verdict:
    """A refusal; ``reason`` is for people and tests."""
    return Verdict(status, {"message": message}, reason, {"x-amzn-errortype": kind})


def wrapped(verdict: Verdict) -> Verdict:
    """A refusal by the model's own server, as Converse passes it on."""
    return refuse(f"The model returned the following errors: {verdict.message}", verdict.reason)


def passed_on(verdict: Verdict) -> Verdict:
    """A refusal by the model's own server, as InvokeModel passes it on."""
    return refuse(verdict.message, verdict.reason)


def unknown_model(model: str) -> Verdict:
    """The refusal of a model that is not served."""
    return refuse("The provided model identifier is invalid.", f"unknown model {model}")
