"""Replay of a recorded conversation: what our next request would carry, beside what the accepted one carried.

A case is a JSON file of exchanges (request and response as recorded). For each request that was accepted the log is
filled with the recorded responses and the request's other messages, compiled under the rules of its provider, and
compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from thinkback.cli.wire.carried import COUNTED, carry
from thinkback.cli.wire.recorded import Json, Recorded, drafts_of, is_known, response_of, target_of
from thinkback.errors import NotFoundError, ThinkbackError, WireError
from thinkback.log.seal import seal
from thinkback.model.commits import Head, Request, Step
from thinkback.model.rule import Difference, Rule
from thinkback.model.target import Settings, Target
from thinkback.rules import Rulebook
from thinkback.session import config
from thinkback.turn.plan import History


def replay_file(path: str) -> Json:
    """The comparison for the case in ``path``. Raises ``NotFoundError`` or ``WireError`` for an unusable file."""
    try:
        case = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotFoundError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise WireError(f"{path} is not JSON: {error}") from None
    if not isinstance(case, dict) or not isinstance(case.get("exchanges"), list):
        raise WireError(f"{path} is not a recorded case: it has no list of exchanges")
    return replay_case(case, config.rulebook())


def replay_case(case: Json, rulebook: Rulebook) -> Json:
    """Per exchange: ``compiled`` and ``recorded`` carry, the ``differences``, and which rule row explains each."""
    earlier: list[Recorded] = []
    rows: list[Json] = []
    for at, exchange in enumerate(case["exchanges"]):
        if not is_known(exchange):
            continue
        target = target_of(exchange, rulebook)
        request: Request | None = None
        if exchange.get("request"):
            row, request = _compare(at, exchange, target, earlier)
            rows.append(row)
        result = response_of(exchange, target)
        if result is not None:
            earlier.append(Recorded(result, request))
    differences = [difference for row in rows for difference in row["differences"]]
    return {
        "case": str(case.get("case", "")),
        "exchanges": rows,
        "conversation": any(row["earlier_responses"] for row in rows),
        "differs": bool(differences),
        "unexplained": sum(1 for difference in differences if difference["explained_by"] is None),
    }


def _compare(at: int, exchange: Json, target: Target, earlier: Sequence[Recorded]) -> tuple[Json, Request | None]:
    """What our request carries beside the recorded one, and the record of ours."""
    body: Json = exchange["request"]["body"]
    accepted = (exchange.get("response") or {}).get("status", 200) < 400
    log = drafts_of(body, target, earlier)
    row: Json = {
        "exchange": at,
        "dialect": target.endpoint.dialect,
        "endpoint": target.endpoint.id,
        "model": target.model,
        "rule": target.rule.id,
        "guessed": target.guessed,
        "accepted": accepted,
        "earlier_responses": log.used,
        "recorded": carry(body),
    }
    try:
        plan = History(seal(Step("replay", tuple(log.drafts), 0), Head())).plan(target, Settings(), None, log.params)
    except ThinkbackError as error:
        refused = _difference("refused", error.message, "sent", None)
        return {**row, "compiled": None, "differences": [refused] if accepted else []}, None
    row["compiled"] = carry(json.loads(bytes(plan)))
    row["decisions"] = [f"{d.action} {d.what}: {d.reason}" for d in plan.decisions]
    row["differences"] = list(_differences(row["compiled"], row["recorded"], target.rule)) if accepted else []
    return row, plan.record()


def _differences(compiled: Json, recorded: Json, rule: Rule) -> Iterator[Json]:
    for key in COUNTED:
        ours, theirs = compiled.get(key, 0), recorded.get(key, 0)
        if ours != theirs:
            yield _difference(key, ours, theirs, _row(key, rule.adds if ours > theirs else rule.omits))
    if compiled["opaque_sha256"] != recorded["opaque_sha256"]:
        explained = next(
            (row for key in ("encrypted", "signatures") for row in [_row(key, (*rule.adds, *rule.omits))] if row), None
        )
        yield _difference("opaque_sha256", compiled["opaque_sha256"], recorded["opaque_sha256"], explained)


def _row(key: str, rows: Sequence[Difference]) -> Json | None:
    return next(({"key": row.key, "source": row.source} for row in rows if row.key == key), None)


def _difference(key: str, compiled: Any, recorded: Any, explained: Json | None) -> Json:
    return {"key": key, "compiled": compiled, "recorded": recorded, "explained_by": explained}
