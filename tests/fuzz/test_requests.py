"""Every request reader before any JSON: it gives drafts, or says in a ``WireError`` what is wrong, and nothing else."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.dialects import DIALECTS
from tests.fuzz.damage import JUNK, damaged, each_damage
from tests.fuzz.requests import REQUESTS
from thinkback.errors import WireError
from thinkback.model import canonical
from thinkback.model.blocks import Origin
from thinkback.model.commits import decode_payload
from thinkback.wire.registry import dialect as dialect_of
from thinkback.wire.result import ReadRequest

each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
KEYS = sorted({key for request in REQUESTS.values() for key in request})


def adopt(dialect: str, body: dict[str, Any]) -> ReadRequest | None:
    """What was read of a request, its drafts having been stored and read again; ``None`` if it was refused."""
    ids = itertools.count()
    try:
        read = dialect_of(dialect).read_request(body, lambda: f"r{next(ids)}", Origin(dialect, "", ""))
    except WireError:
        return None
    for draft in read.drafts:
        assert decode_payload(canonical.encode(draft.value)) == draft.value
    return read


@each_dialect
def test_the_requests_to_damage_are_sound(dialect: str) -> None:
    """Before anything is broken each request is read, or the laws below would tell nothing."""
    read = adopt(dialect, REQUESTS[dialect])

    assert read is not None
    assert {"system", "tools", "user", "response", "reasoning", "tool_call", "tool_result"} <= {
        draft.kind for draft in read.drafts
    }


@each_dialect
def test_one_value_of_another_type_is_read_or_refused(dialect: str) -> None:
    """Every value of a sound request, replaced by one of each type."""
    for body in each_damage(REQUESTS[dialect]):
        if isinstance(body, dict):
            adopt(dialect, body)


@each_dialect
@given(st.data())
def test_a_damaged_request_is_read_or_refused(dialect: str, data: st.DataObject) -> None:
    """Values of any type in any place of a request that was sound."""
    body = data.draw(damaged(REQUESTS[dialect]).filter(lambda value: isinstance(value, dict)))

    adopt(dialect, body)


@each_dialect
@given(
    st.dictionaries(st.sampled_from(KEYS), JUNK | st.lists(st.dictionaries(st.sampled_from(KEYS), JUNK), max_size=2))
)
def test_any_object_is_read_or_refused(dialect: str, body: dict[str, Any]) -> None:
    """JSON of any shape under the names that requests have."""
    adopt(dialect, body)
