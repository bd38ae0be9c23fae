"""google-genai: the Gemini API."""

from __future__ import annotations

from typing import Any

from bench.gateway_clients.job import (
    ASYNC,
    ASYNC_STREAMED,
    REBUILT,
    STREAMED,
    STRUCTURED,
    SYNC,
    TOOLS,
    Answer,
    Job,
    New,
    Script,
    call_of,
    inside,
    inside_async,
    joined,
    loop,
    loop_async,
)
from bench.gateway_clients.schema import Weather
from bench.peers.places import ABOUT, SCHEMA

CHAT = "chat"


class _Contents:
    def __init__(self, job: Job) -> None:
        from google.genai import types

        self._types: Any = types
        self._job = job
        self._contents: list[Any] = []
        self._names: dict[str, Any] = {}
        declared = [
            types.FunctionDeclaration(name=name, description=about, parameters_json_schema=SCHEMA)
            for name, about in ABOUT.items()
        ]
        shape: Any = {}
        if job.mode == STRUCTURED:
            shape = {"response_mime_type": "application/json", "response_schema": Weather}
        self._config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)], **shape)

    def take(self, new: New) -> dict[str, Any]:
        if isinstance(new, str):
            self._contents.append(self._types.UserContent(new))
        else:
            parts = [
                self._types.Part(
                    function_response=self._types.FunctionResponse(
                        id=self._names[call.id].id, name=call.name, response={"result": text}
                    )
                )
                for call, text in new
            ]
            self._contents.append(self._types.Content(role="user", parts=parts))
        return {"model": self._job.model, "contents": self._contents, "config": self._config}

    def keep(self, parts: list[Any]) -> Answer:
        if self._job.mode == REBUILT:
            kept = [self._plain(part) for part in parts if (part.text and not part.thought) or part.function_call]
        else:
            kept = parts
        self._contents.append(self._types.Content(role="model", parts=kept))
        found = [part.function_call for part in parts if part.function_call]
        self._names = {call.id or str(at): call for at, call in enumerate(found)}
        calls = [call_of(id, call.name, call.args) for id, call in self._names.items()]
        return Answer(joined(part.text for part in parts if part.text and not part.thought), calls)

    def _plain(self, part: Any) -> Any:
        return self._types.Part(text=part.text or None, function_call=part.function_call)


def _hold(job: Job) -> list[str]:
    from google import genai

    several: Any = genai.Client
    options: Any = {"base_url": job.base_url, "httpx_client": inside(job), "httpx_async_client": inside_async(job)}
    client = several(api_key=job.key, http_options=options)
    if job.mode == CHAT:
        chat = client.chats.create(model=job.model, config={"tools": list(TOOLS.values())})
        return [chat.send_message(prompt).text for prompt in job.prompts]
    kept = _Contents(job)
    if job.mode in (ASYNC, ASYNC_STREAMED):

        async def ask_async(new: New) -> Answer:
            request = kept.take(new)
            if job.mode == ASYNC:
                return kept.keep(_parts(await client.aio.models.generate_content(**request)))
            stream = await client.aio.models.generate_content_stream(**request)
            return kept.keep([part async for chunk in stream for part in _parts(chunk)])

        return loop_async(job, ask_async)

    def ask(new: New) -> Answer:
        request = kept.take(new)
        if job.mode == STREAMED:
            stream = client.models.generate_content_stream(**request)
            return kept.keep([part for chunk in stream for part in _parts(chunk)])
        response = client.models.generate_content(**request)
        answer = kept.keep(_parts(response))
        if job.mode == STRUCTURED and not answer.calls:
            return Answer(response.parsed.model_dump_json(), [])
        return answer

    return loop(job, ask)


def _parts(response: Any) -> list[Any]:
    content = response.candidates[0].content if response.candidates else None
    return list(content.parts or ()) if content else []


GEMINI = Script(
    "google-genai",
    "gemini",
    ("google-genai",),
    (SYNC, ASYNC, STREAMED, ASYNC_STREAMED, CHAT, REBUILT, STRUCTURED),
    _hold,
    'from google import genai\nclient = genai.Client(api_key="tb-...", '
    'http_options={"base_url": "http://127.0.0.1:8484"})',
)
