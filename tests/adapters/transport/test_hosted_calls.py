"""Calls of tools that a provider defines and a program runs: what came of them goes along with the reasoning."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import thinkback
from tests.adapters.transport.provider import KEY, Provider, says

URL = "https://api.openai.com/v1/responses"
HEADERS = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
ASKED = {"role": "user", "content": "What is here?"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABthought"}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
}
SHELL = {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"}
LISTED = [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shell": (SHELL, {"type": "shell_call_output", "call_id": "c1", "output": LISTED}),
    "patch": (
        {
            "type": "apply_patch_call",
            "id": "apc_1",
            "call_id": "c2",
            "status": "completed",
            "operation": {"type": "create_file", "path": "p", "diff": "+d"},
        },
        {"type": "apply_patch_call_output", "call_id": "c2", "status": "completed", "output": "Done."},
    ),
    "computer": (
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "c3",
            "action": {"type": "screenshot"},
            "pending_safety_checks": [],
            "status": "completed",
        },
        {
            "type": "computer_call_output",
            "call_id": "c3",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        },
    ),
    "local shell": (
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "c4",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        {"type": "local_shell_call_output", "id": "lsh_1", "output": "a.txt"},
    ),
    "approval": (
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "read", "server_label": "files", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ),
    "search of tools": (
        {
            "type": "tool_search_call",
            "id": "tsc_1",
            "call_id": "c6",
            "execution": "client",
            "arguments": {"query": "weather"},
            "status": "completed",
        },
        {"type": "tool_search_output", "call_id": "c6", "execution": "client", "status": "completed", "tools": []},
    ),
}


def asks(*items: Any) -> bytes:
    """A request of these input items."""
    body = {"model": "gpt-5.4", "store": False, "include": ["reasoning.encrypted_content"], "input": items}
    return json.dumps(body).encode()


def answers(*items: Any) -> Any:
    """A response with these output items."""
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    body = {"id": "resp_1", "object": "response", "status": "completed", "output": items, "usage": usage}
    return says(200, json.dumps({**body, "model": "gpt-5.4"}).encode())


def sent(log: str, provider: Provider, *requests: bytes) -> list[Any]:
    """The input items of the last of some requests, as the provider gets them."""
    with thinkback.http_client(log, transport=provider) as client:
        for request in requests:
            assert 200 == client.post(URL, content=request, headers=HEADERS).status_code
    found: list[Any] = provider.bodies[-1]["input"]
    return found


@pytest.mark.parametrize("kind", CALLS)
def test_what_came_of_a_call_beside_a_text_goes_along(new_log: Callable[[], str], kind: str) -> None:
    """It is the program's own item, and the answer before it is known by its text."""
    call, output = CALLS[kind]
    provider = Provider(answers(THOUGHT, SAID, call), answers(SAID))
    items = sent(new_log(), provider, asks(ASKED), asks(ASKED, SAID, call, output))
    assert [ASKED, THOUGHT, SAID, call, output] == items
    assert "complete" == thinkback.why().reattached


@pytest.mark.parametrize("kind", CALLS)
def test_what_came_of_a_call_stays_in_later_requests(new_log: Callable[[], str], kind: str) -> None:
    """Each stands once, in its place."""
    call, output = CALLS[kind]
    told = {**SAID, "id": "msg_2", "content": [{"type": "output_text", "text": "A file.", "annotations": []}]}
    again = {**THOUGHT, "id": "rs_2", "encrypted_content": "gAAAAABagain"}
    provider = Provider(answers(THOUGHT, SAID, call), answers(again, told), answers(SAID))
    before = (ASKED, SAID, call, output)
    items = sent(new_log(), provider, asks(ASKED), asks(*before), asks(*before, told, ASKED))
    assert [ASKED, THOUGHT, SAID, call, output, again, told, ASKED] == items


def test_what_a_provider_ran_itself_stands_once(new_log: Callable[[], str]) -> None:
    """Its output has an id, and is part of the response."""
    output = {"type": "shell_call_output", "id": "sho_1", "call_id": "c1", "status": "completed", "output": LISTED}
    provider = Provider(answers(THOUGHT, SHELL, output, SAID), answers(SAID))
    items = sent(new_log(), provider, asks(ASKED), asks(ASKED, SHELL, output, SAID, ASKED))
    assert [ASKED, THOUGHT, SHELL, output, SAID, ASKED] == items
