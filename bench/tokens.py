"""A server that streams tokens when it is told to, and a terminal that says when it saw them; both in this process.

The server speaks chat completions and notes the moment at which it hands each marked token to the system. It judges
nothing: what is measured is what happens between that moment and the screen.
"""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
_QUESTIONS = re.compile(rb"\x1b\]11;\?(?:\x07|\x1b\\)|\x1b\[6n|\x1b\[c")
_ANSWERS = {b"\x1b]": b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\", b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?6c"}


class Token(NamedTuple):
    """A piece of reasoning, or of the answer."""

    text: str
    thinks: bool = False


class Tokens:
    """``answer`` is what each request is answered with, ``rate`` tokens a second (0: at once)."""

    def __init__(self) -> None:
        self.answer: Sequence[Token] = ()
        self.rate = 0.0
        self.sent: dict[str, float] = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                streams = json.loads(self.rfile.read(int(self.headers["content-length"]))).get("stream", False)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if streams else "application/json")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                try:
                    for piece in outer._pieces() if streams else [outer._whole()]:
                        self.wfile.write(piece)
                except OSError:  # it left
                    return

            def log_message(self, format: str, *args: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def _pieces(self) -> Iterator[bytes]:
        began = time.perf_counter()
        for at, token in enumerate(self.answer):
            if self.rate:
                time.sleep(max(began + at / self.rate - time.perf_counter(), 0))
            delta = {"reasoning_content" if token.thinks else "content": token.text}
            event = _event({"index": 0, "delta": delta, "finish_reason": None})
            self.sent.setdefault(token.text, time.perf_counter())
            yield event
        yield _event({"index": 0, "delta": {}, "finish_reason": "stop"})
        yield b"data: [DONE]\n\n"

    def _whole(self) -> bytes:
        thought = "".join(token.text for token in self.answer if token.thinks)
        text = "".join(token.text for token in self.answer if not token.thinks)
        message = {"role": "assistant", "content": text, "reasoning_content": thought}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _event(choice: Mapping[str, object]) -> bytes:
    body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


class Screen:
    """A command on a terminal of 80 by 24 that answers what terminals are asked; nothing is drawn."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=dict(environment), start_new_session=True
        )
        os.close(slave)
        self.tail = b""

    def wait_for(self, text: str, seconds: float = 60) -> float:
        """The moment at which ``text`` was written to it."""
        wanted, until = text.encode(), time.monotonic() + seconds
        while wanted not in self.tail:
            if not self._read(until - time.monotonic()):
                raise RuntimeError(f"waited for {text!r}; the last of the screen is {self.tail[-600:]!r}")
        return time.perf_counter()

    def enter(self, line: str) -> None:
        """Enter a line; what was written before is forgotten."""
        while self._read(0):
            pass
        self.tail = b""
        os.write(self._master, line.encode() + b"\r")

    def rest(self, seconds: float) -> None:
        """Let it come to rest: nothing is written for so long."""
        while self._read(seconds):
            pass

    def seconds(self) -> float:
        """Processor time that it used so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / TICKS

    def resident(self) -> int:
        """Resident memory in bytes."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], max(seconds, 0))[0]:
            return False
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # Linux says so when the other side has closed
            return False
        for asked in _QUESTIONS.findall(piece):
            os.write(self._master, _ANSWERS[asked if asked in _ANSWERS else asked[:2]])
        self.tail = (self.tail + piece)[-20_000:]
        return bool(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGHUP)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self._master)
