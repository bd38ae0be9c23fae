"""What the fuzzing harnesses share: coverage-guided where atheris is installed, else a mutator that knows nothing.

``python -m tests.fuzz.atheris_<name> [SECONDS]`` runs one; any exception is a finding, ends it with a failure, and
leaves the input in ``.fuzz``. Another argument is the path of such an input, to run it again.
"""

from __future__ import annotations

import importlib
import random
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PLACE = Path(".fuzz")
_atheris: Any = importlib.import_module("atheris") if find_spec("atheris") else None
_PIECES = (b"", b"\0", b"\xff", b'"', b"\\", b"{", b"}", b"\n\n", b"\r", b"null", b"[]", b"data:", b"\\ud83d", b"1e999")


def instrumented() -> AbstractContextManager[object]:
    """Import what is to be fuzzed inside this: only so does atheris see where an input leads."""
    found: AbstractContextManager[object] = (
        nullcontext() if _atheris is None else _atheris.instrument_imports(include=["thinkback"])
    )
    return found


def run(name: str, target: Callable[[bytes], None], seeds: list[bytes]) -> None:
    """Fuzz ``target`` for as long as the command line says, or run the inputs it names."""
    argument = sys.argv[1] if len(sys.argv) > 1 else "60"
    if not argument.isdecimal():
        target(Path(argument).read_bytes())
        return
    corpus = PLACE / name
    corpus.mkdir(parents=True, exist_ok=True)
    for at, seed in enumerate(seeds):
        (corpus / f"seed-{at}").write_bytes(seed)
    if _atheris is None:
        print(f"{name}: atheris is not installed; {mutate(name, target, seeds, int(argument))} blind mutations")
        return
    limits = [f"-max_total_time={argument}", "-timeout=10", "-rss_limit_mb=1024", "-max_len=2048"]
    _atheris.Setup(
        [sys.argv[0], str(corpus), f"-artifact_prefix={PLACE}/{name}-", "-print_final_stats=1", *limits], target
    )
    _atheris.Fuzz()


def mutate(name: str, target: Callable[[bytes], None], seeds: list[bytes], seconds: int) -> int:
    """Mutations of the seeds, and of those again; returns how many. What raises is kept, and raises."""
    chance, end, ran = random.Random(), time.monotonic() + seconds, 0
    known = list(seeds)
    while time.monotonic() < end:
        data = bytearray(chance.choice(known))
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(data) + 1)
            new = chance.choice((chance.randbytes(1), chance.choice(_PIECES), bytes(data[at : at + 40])))
            data[at : at + chance.choice((0, 0, 1, 20))] = new
        try:
            target(bytes(data))
        except BaseException:
            (PLACE / f"{name}-found").write_bytes(data)
            raise
        ran += 1
        if len(data) < 2048 and chance.random() < 0.02:
            known.append(bytes(data))
    return ran
