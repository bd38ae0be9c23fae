"""An upstream that answers as the name of the model says: well, badly, at length, or not at all."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "sk-upstream-0123456789-never-shown"
WAYS = ("good", "good", "good", "nonsense", "deep", "long", "cut", "empty", "moved", "refuses", "fails", "endless")
_USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
_SAID: dict[str, Any] = {
    "chat": {
        "id": "x",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."},
            }
        ],
        "usage": _USAGE,
    },
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Hi."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "Hi.", "thoughtSignature": "c2ln"}]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
    },
    "responses": {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
            },
        ],
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    },
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer in the way that the model is named after."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        found = re.search(rb"way-(\w+)", body + self.path.encode())
        way = found[1].decode() if found else "good"
        said = json.dumps(_SAID[self.path.split("/")[1]]).encode()
        told = " ".join((SECRET, *self.headers.values(), "/etc/passwd"))
        match way:
            case "nonsense":
                self._tell(200, b"\x00\xff nonsense {")
            case "deep":
                self._tell(200, b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
            case "long":
                self._tell(200, said.replace(b"Hi.", b"Hi. " * 500_000))
            case "cut":
                self._tell(200, said[: len(said) // 2], length=len(said))
            case "empty":
                self._tell(200, b"")
            case "moved":
                self._tell(302, b"", location="http://169.254.169.254/latest/meta-data/")
            case "refuses":
                self._tell(401, json.dumps({"error": {"message": f"bad key {told}"}}).encode())
            case "fails":
                self._tell(500, json.dumps({"error": {"message": f"broken {told}"}}).encode())
            case "endless":
                self._tell(200, b"data: " + b"x" * 3_000_000, kind="text/event-stream")
            case _:
                self._tell(200, said)

    def _tell(
        self, status: int, body: bytes, length: int = -1, kind: str = "application/json", location: str = ""
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body) if length < 0 else length))
        self.send_header("set-cookie", f"key={SECRET}")
        self.send_header("x-internal", "/srv/secret")
        if location:
            self.send_header("location", location)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True
        self.close_connection = self.close_connection or length >= 0

    def handle(self) -> None:
        """Serve until the client goes away, as it may at any time: that is no fault to print."""
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is told."""


@contextmanager
def unreliable() -> Iterator[str]:
    """The address of one; a path behind it names the dialect that it speaks."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
