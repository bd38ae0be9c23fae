"""The description of the gateway's paths in OpenAPI 3.1, for people, generators and fuzzers.

It says what is the gateway's own: paths, who may ask, limits, headers, errors. What stands in a request is the
providers' own, so a schema names only what every request of the dialect has.
"""

from __future__ import annotations

from typing import Any

import thinkback

Table = dict[str, Any]

ERRORS = {
    "400": "The request is malformed, or the upstream refuses it.",
    "401": "The key is missing or unknown to this gateway.",
    "402": "The budget of the key is used up.",
    "403": "The key, the Host header or the origin does not allow the request.",
    "404": "The model does not exist.",
    "405": "The path does not support this method.",
    "408": "The request did not arrive in time.",
    "409": "Another request with the same idempotency key is still running, or had another body.",
    "413": "The request is too large.",
    "414": "The address is too long.",
    "415": "The body is not JSON, or its content encoding is unknown.",
    "422": "The upstream cannot process the request.",
    "429": "Too many requests, or a budget is used up; Retry-After says when to retry.",
    "431": "The headers are too large.",
    "500": "The gateway failed.",
    "502": "The upstream failed or is unreachable.",
    "503": "Temporarily unavailable; Retry-After says when to retry.",
    "504": "The upstream did not answer in time.",
    "529": "The upstream is overloaded.",
}
HEADERS = {
    "x-request-id": "The id of the request: the client's, or one that the gateway made.",
    "thinkback-session": "The conversation in the log.",
    "thinkback-response": "The response in the log.",
    "thinkback-upstream": "Who answered: upstream/model.",
    "thinkback-failed-over": "Upstreams that the request was sent to before, each with why it was left.",
    "thinkback-reattach": "Recognition of earlier answers: complete, partial, none, unknown, not-needed, unavailable.",
    "thinkback-degraded": "Parts of the gateway that are out of order.",
    "thinkback-system": "That a part of the system prompt was sent behind the history, and what thinking that kept.",
    "thinkback-left-out": "Parts of the request that were not sent to the upstream, with the reasons.",
}


def _object(required: tuple[str, ...] = (), **properties: Table) -> Table:
    return {"type": "object", "required": list(required), "properties": properties}


def _array(of: Table) -> Table:
    return {"type": "array", "items": of}


STRING: Table = {"type": "string"}
BOOLEAN: Table = {"type": "boolean"}
COUNT: Table = {"type": "integer", "minimum": 1, "maximum": 1_000_000}
MODEL: Table = {
    "type": "string",
    "minLength": 1,
    "description": "An alias of the gateway's configuration, or ENDPOINT/MODEL.",
}
CONTENT: Table = {"anyOf": [STRING, _array(_object(("type",), type=STRING, text=STRING))]}

REQUESTS: dict[str, Table] = {
    "ChatCompletionRequest": _object(
        ("model", "messages"),
        model=MODEL,
        messages={
            **_array(
                _object(
                    ("role", "content"),
                    role={"enum": ["system", "developer", "user", "assistant"]},
                    content=CONTENT,
                )
            ),
            "minItems": 1,
        },
        stream=BOOLEAN,
        max_tokens=COUNT,
        temperature={"type": "number", "minimum": 0, "maximum": 2},
        reasoning_effort={"enum": ["none", "minimal", "low", "medium", "high", "xhigh"]},
        user=STRING,
    ),
    "ResponsesRequest": _object(
        ("model", "input"),
        model=MODEL,
        input={
            "anyOf": [
                STRING,
                _array(_object(("role", "content"), role={"enum": ["user", "assistant", "system"]}, content=STRING)),
            ]
        },
        instructions=STRING,
        stream=BOOLEAN,
        store=BOOLEAN,
        previous_response_id=STRING,
        max_output_tokens=COUNT,
    ),
    "MessagesRequest": _object(
        ("model", "max_tokens", "messages"),
        model=MODEL,
        max_tokens=COUNT,
        messages={
            **_array(_object(("role", "content"), role={"enum": ["user", "assistant"]}, content=CONTENT)),
            "minItems": 1,
        },
        system=CONTENT,
        stream=BOOLEAN,
    ),
    "CountTokensRequest": _object(
        ("model", "messages"),
        model=MODEL,
        messages={
            **_array(_object(("role", "content"), role={"enum": ["user", "assistant"]}, content=CONTENT)),
            "minItems": 1,
        },
    ),
    "GenerateContentRequest": _object(
        ("contents",),
        contents={
            **_array(
                _object(("parts",), role={"enum": ["user", "model"]}, parts=_array(_object(("text",), text=STRING)))
            ),
            "minItems": 1,
        },
        systemInstruction=_object((), parts=_array(_object(("text",), text=STRING))),
    ),
}
SCHEMAS: dict[str, Table] = {
    **REQUESTS,
    "OpenAIError": _object(("error",), error=_object(("message",), message=STRING)),
    "AnthropicError": _object(
        ("type", "error"), type={"const": "error"}, error=_object(("type", "message"), type=STRING, message=STRING)
    ),
    "GeminiError": _object(
        ("error",),
        error=_object(("code", "message", "status"), code={"type": "integer"}, message=STRING, status=STRING),
    ),
    "Models": _object((), data=_array(_object(("id",), id=STRING)), models=_array(_object(("name",), name=STRING))),
    "Model": _object((), id=STRING, name=STRING),
    "Ready": _object(("ready", "parts"), ready=BOOLEAN, parts={"type": "object", "additionalProperties": STRING}),
}


def _ref(name: str) -> Table:
    return {"$ref": f"#/components/schemas/{name}"}


def _errors(schema: str) -> Table:
    content = {"application/json": {"schema": _ref(schema)}}
    return {
        status: {"description": said, "content": content, "headers": {"x-request-id": {"schema": STRING}}}
        for status, said in ERRORS.items()
    }


def _post(summary: str, request: str, error: str, *parameters: Table, streams: bool = True) -> Table:
    document: Table = {"application/json": {"schema": {}}}
    stream: Table = {"text/event-stream": {"schema": {}}} if streams else {}
    headers = {name: {"description": said, "schema": STRING} for name, said in HEADERS.items()}
    done = {"description": "The response, whole or as a stream.", "content": {**document, **stream}, "headers": headers}
    said: Table = {
        "summary": summary,
        "security": KEYS,
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ref(request)}}},
        "responses": {"200": done, **_errors(error)},
    }
    return {"post": {**said, "parameters": list(parameters)} if parameters else said}


def _get(summary: str, kind: str, schema: Table, *parameters: Table, keys: bool = False, error: str = "") -> Table:
    done = {"200": {"description": summary, "content": {kind: {"schema": schema}}}}
    said: Table = {
        "summary": summary,
        "security": KEYS if keys else [{}],
        "responses": {**done, **_errors(error or "OpenAIError")},
    }
    return {"get": {**said, "parameters": list(parameters)} if parameters else said}


def _in_path(name: str, said: str) -> Table:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": said, "schema": schema}


KEYS: list[Table] = [{"bearer": []}, {"header": []}, {"google": []}]
MODEL_PARAMETER = _in_path("model", "A model; it may have slashes.")
ALT: Table = {"name": "alt", "in": "query", "schema": {"enum": ["sse", "json"]}}
READY: Table = {"description": "Not ready.", "content": {"application/json": {"schema": _ref("Ready")}}}


def _ready() -> Table:
    page = _get("Report whether the gateway is ready for requests", "application/json", _ref("Ready"))
    page["get"]["responses"]["503"] = READY
    return page


DESCRIPTION: Table = {
    "openapi": "3.1.0",
    "info": {
        "title": "thinkback gateway",
        "version": thinkback.__version__,
        "description": "Serves clients of the OpenAI, Anthropic and Gemini APIs, and sends back the reasoning that "
        "they drop. Requests and responses are the providers' own.",
    },
    "paths": {
        "/v1/chat/completions": _post("A chat completion", "ChatCompletionRequest", "OpenAIError"),
        "/v1/responses": _post("A response", "ResponsesRequest", "OpenAIError"),
        "/v1/messages": _post("A message", "MessagesRequest", "AnthropicError"),
        "/v1/messages/count_tokens": _post(
            "Count the tokens of a message", "CountTokensRequest", "AnthropicError", streams=False
        ),
        "/v1beta/models/{model}:generateContent": _post(
            "A response", "GenerateContentRequest", "GeminiError", MODEL_PARAMETER, streams=False
        ),
        "/v1beta/models/{model}:streamGenerateContent": _post(
            "A response as a stream, or as an array", "GenerateContentRequest", "GeminiError", MODEL_PARAMETER, ALT
        ),
        "/v1beta/models/{model}:countTokens": _post(
            "Count the tokens of a request", "GenerateContentRequest", "GeminiError", MODEL_PARAMETER, streams=False
        ),
        "/openai/deployments/{model}/chat/completions": _post(
            "A chat completion by Azure's path", "ChatCompletionRequest", "OpenAIError", MODEL_PARAMETER
        ),
        "/v1/models": _get("List the models", "application/json", _ref("Models"), keys=True),
        "/v1/models/{model}": _get("Describe one model", "application/json", _ref("Model"), MODEL_PARAMETER, keys=True),
        "/v1beta/models": _get(
            "List the models in Gemini's form", "application/json", _ref("Models"), keys=True, error="GeminiError"
        ),
        "/v1beta/models/{model}": _get(
            "Describe one model", "application/json", _ref("Model"), MODEL_PARAMETER, keys=True, error="GeminiError"
        ),
        "/": _get("Name the server", "application/json", _object(("name",), name=STRING)),
        "/healthz": _get("Report that the process is alive", "text/plain", STRING),
        "/readyz": _ready(),
        "/metrics": _get("Metrics for Prometheus", "text/plain", STRING),
        "/openapi.json": _get("This description", "application/json", {"type": "object"}),
    },
    "components": {
        "schemas": SCHEMAS,
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            "google": {"type": "apiKey", "in": "header", "name": "x-goog-api-key"},
        },
    },
}
