"""litellm's chat stream, timed in an environment of its own: it brings half the world with it, and is in no extra.

Run by that environment's interpreter with nothing of this project in reach. The body comes on standard input; standard
output gets the version and, for each round, the seconds from the first piece of the response to the last chunk.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from time import perf_counter
from typing import Any

PIECE = 16_384


def main() -> None:
    """Warm up, then one figure per round asked for."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Whichever httpx the openai package in this environment goes with.
    httpx, litellm, openai = map(import_module, ("httpx2" if find_spec("httpx2") else "httpx", "litellm", "openai"))
    body = sys.stdin.buffer.read()
    began = 0.0

    class Body(httpx.SyncByteStream):  # type: ignore[name-defined, misc]
        def __iter__(self) -> Iterator[bytes]:
            nonlocal began
            began = perf_counter()
            yield from (body[at : at + PIECE] for at in range(0, len(body), PIECE))

    def answer(request: Any) -> Any:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    http = httpx.Client(transport=httpx.MockTransport(answer))
    client = openai.OpenAI(api_key="none", base_url="https://api.example.org", http_client=http, max_retries=0)
    asked: list[dict[str, Any]] = [{"role": "user", "content": "Why?"}]
    seconds = []
    for _ in range(int(sys.argv[1]) + 1):
        said = 0
        for chunk in litellm.completion(model="openai/reasoner", messages=asked, stream=True, client=client):
            said += len(getattr(chunk.choices[0].delta, "reasoning_content", None) or "")
        seconds.append(perf_counter() - began)
        assert said, "the reasoning was lost"
    print(json.dumps({"version": version("litellm"), "seconds": seconds[1:]}))


if __name__ == "__main__":
    main()
