"""What a gateway needs to answer clients of the Messages API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from thinkback.wire.anthropic.opaque import CLOSING, MARKED, ends, rewrite
from thinkback.wire.anthropic.unsigned import Signing
from thinkback.wire.anthropic.write_response import Writer, write_error, write_response
from thinkback.wire.front import ROUTERS, Address, Body, Field, Front, Listed, is_object


def _list_models(listed: Sequence[Listed]) -> dict[str, Any]:
    rows = [_show_model(each) for each in listed]
    first, last = (rows[0]["id"], rows[-1]["id"]) if rows else (None, None)
    return {"data": rows, "has_more": False, "first_id": first, "last_id": last}


def _show_model(listed: Listed) -> dict[str, Any]:
    made = datetime.fromtimestamp(listed.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": "model", "id": listed.id, "display_name": listed.display or listed.id, "created_at": made}


FRONT = Front(
    address=Address(
        paths={"/messages": False, "/messages/count_tokens": True},
        calls={},
        marks=re.compile("/messages"),
        header="anthropic-version",
    ),
    body=Body(
        messages="messages",
        one_message=None,
        continues=(),
        previous="",
        end_user=("metadata.user_id",),
        kinds={"metadata": "object", "stream": "boolean", "thinking": "object", "tools": "list"},
        usage="",
        thinking="thinking.type",
        models=(*ROUTERS, Field("model", "tools"), Field("model", "context_management"), Field("advisor")),
        stored=(
            Field("container", names=is_object),
            Field("file_id", "messages"),
            Field("file_id", "system"),
            Field("skills", "container"),
            Field("thread.previous_message_id"),
        ),
    ),
    writer=Writer,
    write_response=write_response,
    write_error=write_error,
    rewrite=rewrite,
    ends=ends,
    marked=MARKED,
    bare=str,
    without_counts=None,
    as_asked=None,
    reports="context_management",
    signing=Signing,
    closing=CLOSING,
    blocks_in_order=True,
    id_prefix="msg_",
    headers=("anthropic-beta",),
    request_id="request-id",
    operation="chat",
    list_models=_list_models,
    show_model=_show_model,
)
