"""Whom a payload names as its end user."""

from __future__ import annotations

import pytest

from tests.compile.build import HERE
from thinkback.log.erasing import END_USER, end_users, skeleton
from thinkback.model.commits import Message, Request, Response

RECORD = Request({END_USER: "xenia"}, {}, (), '{"user":"yorick","metadata":{"user_id":7}}', "", "", "", "", "", "", "")


def test_whom_a_record_names() -> None:
    """What the gateway was told, and what the parameters say; nothing of it is left after an erasure."""
    assert ["xenia", "yorick"] == list(end_users(RECORD))
    left = skeleton(RECORD)
    assert left is not None
    assert [""] == list(end_users(left))


@pytest.mark.parametrize("params", ["", "[]", '{"user":7}'])
def test_parameters_of_another_program_name_nobody(params: str) -> None:
    """They may be anything."""
    assert [""] == list(end_users(Request({}, {}, (), params, "", "", "", "", "", "", "")))


def test_other_payloads() -> None:
    """A response names whom it was minted for, a message nobody."""
    assert [HERE.end_user] == list(end_users(Response(HERE)))
    assert [] == list(end_users(Message("user")))
