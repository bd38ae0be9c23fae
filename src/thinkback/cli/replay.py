"""Replay of a recorded conversation: what our next request would carry, beside what the accepted one carried.

A case is a JSON file of exchanges (request and response as recorded). For each request the log is filled with the
recorded responses and the request's other messages, compiled under the rules of its provider, and compared.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from thinkback.errors import NotFoundError, ReplayRefused, WireError
from thinkback.log.seal import seal
from thinkback.model import canonical
from thinkback.model.blocks import Origin, Text, ToolCall
from thinkback.model.commits import Draft, Head, Step, Tool, block_draft
from thinkback.model.rule import Difference, Endpoint, Rule
from thinkback.model.target import Settings, Target
from thinkback.rules import Rulebook, load_rulebook
from thinkback.session import config
from thinkback.turn.dialects import dialect
from thinkback.turn.plan import History, Plan
from thinkback.wire.framing import guess_framing
from thinkback.wire.result import ReadOptions, ReadResult

Json = dict[str, Any]

DIALECT = "openai-chat"
COUNTED = ("reasoning_content", "reasoning", "reasoning_details", "think_tags", "signatures", "encrypted", "tool_calls")
_TAG = re.compile(r"</?(think|thinking|thought|reasoning|analysis)>|\[/?THINK\]")


def replay_file(path: str) -> Json:
    """The comparison for the case in ``path``. Raises ``NotFoundError`` or ``WireError`` for an unusable file."""
    try:
        case = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise NotFoundError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise WireError(f"{path} is not JSON: {error}") from None
    if not isinstance(case, dict) or not isinstance(case.get("exchanges"), list):
        raise WireError(f"{path} is no recorded case: it has no list of exchanges")
    return replay_case(case, load_rulebook(config.user_rule_files()))


def replay_case(case: Json, rulebook: Rulebook) -> Json:
    """Per exchange: ``compiled`` and ``recorded`` carry, the ``differences``, and which rule row explains each."""
    read = [_read_response(exchange, rulebook) for exchange in case["exchanges"]]
    rows = [
        _compare(at, case["exchanges"], read, rulebook)
        for at, exchange in enumerate(case["exchanges"])
        if exchange.get("dialect") == DIALECT and exchange.get("request")
    ]
    differences = [difference for row in rows for difference in row["differences"]]
    return {
        "case": str(case.get("case", "")),
        "exchanges": rows,
        "conversation": any(row["earlier_responses"] for row in rows),
        "differs": bool(differences),
        "unexplained": sum(1 for difference in differences if difference["explained_by"] is None),
    }


def _compare(at: int, exchanges: Sequence[Json], read: Sequence[ReadResult | None], rulebook: Rulebook) -> Json:
    exchange = exchanges[at]
    body: Json = exchange["request"]["body"]
    target = _target(exchange, rulebook)
    used, drafts = _drafts(body.get("messages") or [], read[:at], target.endpoint.dialect)
    row: Json = {
        "exchange": at,
        "endpoint": target.endpoint.id,
        "model": target.model,
        "rule": target.rule.id,
        "guessed": target.guessed,
        "earlier_responses": used,
        "recorded": carry(body.get("messages") or []),
    }
    try:
        plan = _plan(target, body, drafts)
    except ReplayRefused as error:
        return {**row, "compiled": None, "differences": [_difference("refused", error.message, "sent", None)]}
    row["compiled"] = carry([json.loads(message) for message in plan.messages])
    row["decisions"] = [f"{d.action} {d.what}: {d.reason}" for d in plan.decisions]
    row["differences"] = list(_differences(row["compiled"], row["recorded"], target.rule))
    return row


def _plan(target: Target, body: Json, drafts: list[Draft]) -> Plan:
    history = History(seal(Step("replay", tuple(drafts), 0), Head()))
    params = {key: value for key, value in body.items() if key not in ("messages", "model", "tools")}
    tools = [Tool(_tool_name(tool), wire=canonical.encode(tool).decode()) for tool in body.get("tools") or []]
    return history.plan(target, Settings(), tools, params)


def _tool_name(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    return str(function.get("name")) if isinstance(function, dict) else ""


# -- the log ---------------------------------------------------------------------------------------------------------


def _drafts(messages: Sequence[Json], earlier: Sequence[ReadResult | None], name: str) -> tuple[int, list[Draft]]:
    """(recorded responses found among the messages, drafts of all messages)."""
    ids = (f"r{number}" for number in itertools.count())
    left = [result for result in earlier if result is not None]
    drafts: list[Draft] = []
    used = 0
    for message in messages:
        result = _recorded(message, left) if message.get("role") == "assistant" else None
        if result is None:
            drafts += dialect(name).read_messages([message], lambda: next(ids), after=drafts)
            continue
        left.remove(result)
        used += 1
        response = next(ids)
        drafts.append(Draft("response", result.response, response))
        drafts += [block_draft(block, response, index) for index, block in enumerate(result.blocks)]
    return used, drafts


def _recorded(message: Json, responses: Sequence[ReadResult]) -> ReadResult | None:
    """The recorded response that ``message`` repeats: by its calls where it has any, else by its text."""
    calls = [(call.get("id"), (call.get("function") or {}).get("name")) for call in message.get("tool_calls") or []]
    text = _folded(_plain(message.get("content")))
    for result in responses:
        theirs = [(block.id, block.name) for block in result.blocks if isinstance(block, ToolCall)]
        if calls != theirs:
            continue
        answer = "".join(block.text for block in result.blocks if isinstance(block, Text))
        if calls or (text and _folded(answer) == text):
            return result
    return None


def _plain(content: Any) -> str:
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    text = content if isinstance(content, str) else ""
    return re.sub(r"<(think|thinking)>.*?(</\1>|\Z)", "", text, flags=re.DOTALL)


def _folded(text: str) -> str:
    """Recorders normalise typography: letters and digits alone are compared."""
    return "".join(c for c in unicodedata.normalize("NFKC", text) if c.isalnum())


def _read_response(exchange: Json, rulebook: Rulebook) -> ReadResult | None:
    response = exchange.get("response") or {}
    if exchange.get("dialect") != DIALECT or response.get("status", 200) >= 400:
        return None
    raw = response["raw"].encode() if "raw" in response else json.dumps(response.get("body")).encode()
    model = ((exchange.get("request") or {}).get("body") or {}).get("model") or ""
    endpoint = _endpoint(exchange, rulebook)
    origin = Origin(DIALECT, _base_url(endpoint, exchange), str(model))
    options = ReadOptions(rulebook.rule_for(endpoint.id, str(model), config.today())[0].reasoning_field)
    framing = guess_framing(response.get("content_type") or "", raw[:64])
    reader = dialect(DIALECT).reader(origin, framing, options, "")
    reader.feed(raw)
    reader.close()
    return reader.result()


def _target(exchange: Json, rulebook: Rulebook) -> Target:
    endpoint = _endpoint(exchange, rulebook)
    model = str(exchange["request"]["body"].get("model") or "")
    return rulebook.target(endpoint.id, model, base_url=_base_url(endpoint, exchange), on=config.today())


def _endpoint(exchange: Json, rulebook: Rulebook) -> Endpoint:
    try:
        return rulebook.endpoint(str(exchange.get("provider") or "unknown"))
    except NotFoundError:
        return rulebook.endpoint("unknown")


def _base_url(endpoint: Endpoint, exchange: Json) -> str:
    return endpoint.base_url or f"https://{exchange.get('provider') or 'unknown'}.invalid/v1"


# -- what a request carries ------------------------------------------------------------------------------------------


def carry(messages: Sequence[Mapping[str, Any]]) -> Json:
    """Counts of what the messages carry, and the sha256 prefixes of their opaque values in order.

    A reasoning field counts when it holds more than white space: a placeholder is no reasoning.
    """
    counts = dict.fromkeys(COUNTED, 0)
    opaque: list[str] = []
    for message in messages:
        if message.get("role") != "assistant":
            continue
        for field in ("reasoning_content", "reasoning"):
            value = message.get(field)
            counts[field] += isinstance(value, str) and bool(value.strip())
        counts["think_tags"] += bool(_TAG.search(_all_text(message.get("content"))))
        counts["tool_calls"] += len(message.get("tool_calls") or ())
        entries = [entry for entry in message.get("reasoning_details") or () if isinstance(entry, dict)]
        counts["reasoning_details"] += bool(entries)
        for kind, value in _opaque(entries):
            counts[kind] += 1
            opaque.append(hashlib.sha256(value.encode()).hexdigest()[:16])
    return {**{key: count for key, count in counts.items() if count}, "opaque_sha256": opaque}


def _all_text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _opaque(entries: Sequence[Json]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry.get("signature"), str) and entry["signature"]:
            yield "signatures", entry["signature"]
        if isinstance(entry.get("data"), str) and entry["data"]:
            yield "encrypted", entry["data"]


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
