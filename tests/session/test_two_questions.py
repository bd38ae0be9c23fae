"""A question after one that was never answered: two messages of the user stand in a row, or are one."""

from __future__ import annotations

import json

import pytest

import thinkback
from thinkback.rules import load_rulebook
from thinkback.wire.registry import PACKAGES

JOINED = {"bedrock"}
"""The only wire that refuses two messages of one role in a row; docs/history.md says so."""


@pytest.mark.parametrize("dialect", sorted(PACKAGES))
def test_both_questions_go_out_joined_only_where_the_wire_wants_it(dialect: str) -> None:
    """Each as it was asked: nothing is put between them that nobody said."""
    endpoint = next(row.id for row in load_rulebook({}).endpoints() if row.dialect == dialect)
    with thinkback.open(":memory:", rules={}, settings={}) as store:
        session = store.session("s", endpoint=endpoint, model="m", api_key="k" * 10, base_url="https://h.example/v1")
        session.commit("One?")
        body = json.loads(bytes(session.wire.plan("Two?")))
    messages = next(body[name] for name in ("messages", "contents", "input") if name in body)
    said = json.dumps(messages)
    assert said.index("One?") < said.index("Two?")
    assert (1 if dialect in JOINED else 2) == len(messages)
    assert {"user", "user_input"} >= {message.get("role", message.get("type")) for message in messages}
