"""What a gateway needs to answer clients of ``generateContent``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from thinkback.wire.front import ROUTERS, Address, Body, Field, Front, Listed, both_spellings
from thinkback.wire.gemini.hiding import Hiding
from thinkback.wire.gemini.opaque import MARKED, bare, ends, rewrite
from thinkback.wire.gemini.write_response import Writer, write_error, write_response


def _is_stored(value: Any) -> bool:
    """An address inside an account; pages and films of the web are everybody's."""
    return not str(value).startswith(("http://", "https://")) or "googleapis.com" in str(value)


def _list_models(listed: Sequence[Listed]) -> dict[str, Any]:
    return {"models": [_show_model(each) for each in listed]}


def _show_model(listed: Listed) -> dict[str, Any]:
    sizes = {"inputTokenLimit": listed.context, "outputTokenLimit": listed.max_output}
    return {
        "name": f"models/{listed.id}",
        "displayName": listed.display or listed.id,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        **{key: size for key, size in sizes.items() if size},
    }


FRONT = Front(
    address=Address(
        paths={},
        calls={"generateContent": False, "streamGenerateContent": True},
        marks=re.compile(r"\A/v1(?:beta(?!/openai/)|alpha)"),
        header="x-goog-api-key",
        counting="countTokens",
    ),
    body=Body(
        messages="contents",
        one_message=dict,
        continues=(),
        previous="",
        # Google's own API has no name for an end user, Vertex has labels.
        end_user=("labels.user_id", "labels.user"),
        kinds={"generationConfig": "object", "labels": "object", "toolConfig": "object", "tools": "list"},
        usage="",
        thinking="",
        models=(*ROUTERS, Field("model")),
        stored=(
            *both_spellings("cachedContent"),
            *both_spellings("fileUri", under=("contents", "systemInstruction", "system_instruction"), names=_is_stored),
            *both_spellings("fileSearchStoreNames", "datastore", "dataStore", "engine", "ragCorpus", under=("tools",)),
            *both_spellings(
                "apiKeySecret", "apiKeySecretVersion", "credentialSecret", "serviceAccount", under=("tools",)
            ),
        ),
    ),
    writer=Writer,
    write_response=write_response,
    write_error=write_error,
    rewrite=rewrite,
    ends=ends,
    marked=MARKED,
    bare=bare,
    without_counts=None,
    as_asked=None,
    reports="",
    signing=None,
    hiding=Hiding,
    closing=b"",
    blocks_in_order=False,
    id_prefix="",
    headers=(),
    request_id="",
    operation="generate_content",
    list_models=_list_models,
    show_model=_show_model,
    counted="totalTokens",
    counts_in="generateContentRequest",
)
