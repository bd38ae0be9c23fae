"""Starting: what a fresh interpreter pays for thinkback, and what it must not load.

Each process is started by ``posix_spawn`` and waited for by ``wait4`` (a time-out in ``subprocess`` polls in steps of
50 ms); a bare ``python -c pass`` takes its turn among them. Byte code is compiled beforehand, as an installer does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from time import perf_counter

import thinkback
from bench.measure import Case, Figure, Group, Samples, interleaved
from bench.streams import ANSWER

CODES = {
    "bare": "pass",
    "import": "import thinkback",
    "open": 'import thinkback; thinkback.open(":memory:")',
    # What the installed script does; sys.argv[0] does not matter to it.
    "version": "import sys; from thinkback.cli import main; sys.exit(main())",
}
ARGUMENTS = {"version": ["--version"]}

# Walks the sync path stage by stage in one process and says after which stage asyncio was there.
_STAGES = """
import json, sys, tempfile, threading, http.server
sys.path[:0] = {path!r}
assert "asyncio" not in sys.modules
found = {{}}
def note(stage):
    found[stage] = "asyncio" in sys.modules
import thinkback
note("import")
thinkback.open(":memory:").close()
note("open memory")
with tempfile.TemporaryDirectory() as directory:
    thinkback.open(directory + "/log.db").close()
    note("open SQLite")
class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len({answer!r})))
        self.end_headers()
        self.wfile.write({answer!r})
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
threading.Thread(target=server.serve_forever, daemon=True).start()
note("a local HTTP server")
log = thinkback.open(":memory:", rules={{}}, settings={{}})
url = "http://127.0.0.1:%d" % server.server_address[1]
session = log.session("bench", base_url=url, model="deepseek-reasoner", api_key="none")
assert session.chat("Why?", max_retries=0).text == "yes"
note("chat over httpx2")
print(json.dumps(found))
"""


def spawned(command: list[str], environment: Mapping[str, str]) -> Case:
    """A case: wall seconds from ``posix_spawn`` to the end of the process, its output thrown away."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]

    def case() -> float:
        start = perf_counter()
        child = os.posix_spawn(command[0], command, environment, file_actions=quiet)
        _, status, _ = os.wait4(child, 0)
        taken = perf_counter() - start
        if os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"{command} ended with status {os.waitstatus_to_exitcode(status)}")
        return taken

    return case


def _environment(cache: str) -> dict[str, str]:
    """This environment with this thinkback on the path and byte code in a place of its own."""
    source = str(Path(thinkback.__file__).parents[1])
    dropped = ("PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME", "PYTHONPATH")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return {**kept, "PYTHONPATH": source, "PYTHONPYCACHEPREFIX": cache}


@cache
def _samples(quick: bool) -> Samples:
    with tempfile.TemporaryDirectory(prefix="thinkback-bench-") as cache:
        environment = _environment(cache)
        commands = {name: [sys.executable, "-c", code] for name, code in CODES.items()}
        cases = {name: spawned([*command, *ARGUMENTS.get(name, [])], environment) for name, command in commands.items()}
        if not _works(cases["version"]):
            del cases["version"]
        return interleaved(cases, rounds=9 if quick else 31, warm_up=2)


def _works(case: Case) -> bool:
    try:
        case()
    except RuntimeError:
        return False
    return True


def _over(name: str, aim: float, quick: bool) -> Figure:
    samples = _samples(quick)
    extra = samples.over(name, "bare")
    return Figure(
        f"start.{name}",
        extra.value * 1e3,
        "ms",
        aim=f"<= {aim:.0f} ms over a bare interpreter",
        met=extra.value * 1e3 <= aim,
        noise=extra.noise,
        note=f"`{CODES[name]}` {samples.median(name) * 1e3:.1f} ms, bare {samples.median('bare') * 1e3:.1f} ms",
    )


def _version(quick: bool) -> Figure:
    samples, name, aim = _samples(quick), "start.version", "<= 120 ms, the whole process"
    if "version" not in samples.seconds:
        return Figure(name, None, "ms", aim=aim, met=False, note="`thinkback --version` does not run")
    taken, bare = samples.median("version") * 1e3, samples.median("bare") * 1e3
    note = f"`thinkback --version` as the installed script runs it; bare {bare:.1f} ms"
    return Figure(name, taken, "ms", aim=aim, met=taken <= 120, noise=samples.noise("version"), note=note)


def _no_asyncio(quick: bool) -> Figure:
    """The public face's sync path, stage by stage, up to a chat with a server on this machine."""
    code = _STAGES.format(path=[str(Path(thinkback.__file__).parents[1])], answer=ANSWER)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, bool] = json.loads(done.stdout)
    guilty = next((stage for stage, loaded in found.items() if loaded), "")
    return Figure(
        "start.no_asyncio",
        float(bool(guilty)),
        "imports",
        aim="the sync path never imports asyncio",
        met=not guilty,
        note=f"asyncio came with: {guilty}" if guilty else f"asyncio not loaded after any of: {', '.join(found)}",
    )


GROUP = Group("start", (partial(_over, "import", 10), partial(_over, "open", 60), _version, _no_asyncio))
