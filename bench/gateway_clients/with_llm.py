"""The llm package: a conversation whose tools it runs itself; models of other addresses stand in its settings file."""

from __future__ import annotations

import json
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from bench.gateway_clients.job import ASYNC, ASYNC_STREAMED, STREAMED, STRUCTURED, TOOLS, WAYS, Job, Script, run
from bench.gateway_clients.schema import Weather


def _hold(responses: bool, job: Job) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LLM_USER_PATH"] = directory
        name = _plugin(job) if job.log else _in_its_settings(responses, job, Path(directory))
        return run(_several(name, job)) if job.mode in (ASYNC, ASYNC_STREAMED) else _one(name, job)


def _in_its_settings(responses: bool, job: Job, directory: Path) -> str:
    """The model as one of llm's own."""
    model: dict[str, object] = {
        "model_id": "here",
        "model_name": job.model,
        "api_base": job.base_url,
        "api_key_name": "here",
        "supports_tools": True,
        "supports_schema": True,
        "reasoning": True,
        "responses": responses,
    }
    # JSON is YAML.
    (directory / "extra-openai-models.yaml").write_text(json.dumps([model]), encoding="utf-8")
    (directory / "keys.json").write_text(json.dumps({"here": job.key}), encoding="utf-8")
    return "here"


def _plugin(job: Job) -> str:
    """The endpoint of the plugin, which asks by thinkback itself and not by the transport: llm takes no HTTP client."""
    from llm.plugins import pm

    from thinkback.adapters import llm as plugin

    os.environ["THINKBACK_DB"] = job.log
    if not pm.is_registered(plugin):  # thinkback is not installed where the clients are
        pm.register(plugin, "thinkback")
    return f"{plugin.PREFIX}/{job.endpoint}"


def _options(job: Job) -> dict[str, Any]:
    options: dict[str, Any] = {"stream": job.mode in (STREAMED, ASYNC_STREAMED)}
    if job.log:
        effort = {"effort": job.effort or job.asks} if job.effort or job.asks else {}
        options["options"] = {"model": job.routed or job.model, **effort}
    elif job.effort:
        options["options"] = {"reasoning_effort": job.effort}
    if job.mode == STRUCTURED:
        options["schema"] = Weather
    return options


def _one(name: str, job: Job) -> list[str]:
    import llm

    conversation: Any = llm.get_model(name).conversation(tools=list(TOOLS.values()))
    said = []
    for prompt in job.prompts:
        last = list(conversation.chain(prompt, **_options(job)).responses())[-1]
        said.append(_text(job, last.text()))
    return said


async def _several(name: str, job: Job) -> list[str]:
    import llm

    conversation: Any = llm.get_async_model(name).conversation(tools=list(TOOLS.values()))
    said = []
    for prompt in job.prompts:
        texts = [await response.text() async for response in conversation.chain(prompt, **_options(job)).responses()]
        said.append(_text(job, texts[-1]))
    return said


def _text(job: Job, text: str) -> str:
    return Weather.model_validate_json(text).model_dump_json() if job.mode == STRUCTURED else text


_SETTINGS = "# extra-openai-models.yaml in the directory that `llm logs path` names\n"
_LINE = '- {{model_id: mine, model_name: "...", api_base: "http://127.0.0.1:8484/v1", supports_tools: true{more}}}'
_MODES = (*WAYS, STRUCTURED)
CHAT = Script("llm", "openai-chat", ("llm",), _MODES, partial(_hold, False), _SETTINGS + _LINE.format(more=""))
RESPONSES = Script(
    "llm, Responses",
    "openai-responses",
    ("llm",),
    _MODES,
    partial(_hold, True),
    _SETTINGS + _LINE.format(more=", responses: true"),
)
