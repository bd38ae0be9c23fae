"""Every ``RUN`` line of ``deploy/Dockerfile``, without a registry: ``make image-check`` runs it, as root on Linux.

Each stage begins with this machine's own files in place of its base image, as an overlay that goes when the stage is
over: nothing outside of it changes. What is run is what the file says; that the base images have the same programs
(``python``, ``useradd``, ``install``) is not shown. ``instructions`` refuses what it does not know.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FILE = ROOT / "deploy" / "Dockerfile"
_BASE = re.compile(r"\$\{BASE_IMAGE\}(?: AS [a-z]+)?")
_KNOWN = ("ARG", "FROM", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT")
_INSIDE = "mount -t tmpfs none {0} && mkdir {0}/u {0}/w {0}/m && mount -t overlay overlay -o {1} {0}/m && exec {2}"


class Instruction(NamedTuple):
    """One line."""

    word: str
    text: str


def instructions(text: str) -> Iterator[Instruction]:
    """The lines of a Dockerfile. Raises ``ValueError`` for one that is not understood."""
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if not line.strip() or line.startswith("#"):
            continue
        if word not in _KNOWN or not rest.strip():
            raise ValueError(f"not understood: {line}")
        if word == "FROM" and not _BASE.fullmatch(rest):
            raise ValueError(f"no base image by its argument: {rest}")
        if word == "ARG" and rest != "BASE_IMAGE":
            raise ValueError(f"not understood: {line}")
        if word == "ENTRYPOINT":
            json.loads(rest)
        yield Instruction(word, rest)


def stages(text: str) -> list[list[Instruction]]:
    """The instructions of each stage, its ``FROM`` first."""
    found: list[list[Instruction]] = []
    for each in instructions(text):
        if each.word == "FROM":
            found.append([])
        if each.word != "ARG":
            found[-1].append(each)
    return found


def script_of(stage: list[Instruction], built: Path, kept: Path) -> str:
    """What a shell does inside: files that are copied, lines that are run; /opt/thinkback goes to ``kept``."""
    lines = ["set -e", "cd /"]
    for word, text in stage:
        if word == "COPY":
            options = [part for part in shlex.split(text) if part.startswith("--")]
            *sources, target = [part for part in shlex.split(text) if not part.startswith("--")]
            base = built if options else ROOT
            lines.append(f"mkdir -p {shlex.quote(target if len(sources) > 1 else os.path.dirname(target))}")
            named = " ".join(shlex.quote(f"{base}/{source.lstrip('/')}") for source in sources)
            lines.append(f"cp -a {named} {shlex.quote(target)}")
        elif word == "ENV":
            lines.append(f"export {text}")
        elif word == "RUN":
            lines += [f"echo {shlex.quote(f'RUN {text}')}", text]
        elif word == "ENTRYPOINT":
            lines.append(f"{shlex.join(json.loads(text))} --check")
    if stage[0].text.endswith(" AS build"):
        lines += [f"mkdir -p {kept}/opt", f"cp -a /opt/thinkback {kept}/opt/"]
    return "\n".join(lines)


def main() -> int:
    """Run all stages; the exit code of the first line that fails."""
    if os.geteuid() or shutil.which("unshare") is None:
        print("an overlay needs root and unshare: nothing was run")
        return 0
    with tempfile.TemporaryDirectory(prefix="thinkback-image-") as directory:
        (kept := Path(directory) / "kept").mkdir()
        for number, stage in enumerate(stages(FILE.read_text(encoding="utf-8"))):
            (place := Path(directory) / str(number)).mkdir()
            (bound := Path(directory) / "stage.sh").write_text(script_of(stage, kept, Path("/stage")))
            print(f"FROM {stage[0].text} (this machine's files in its place)", flush=True)
            options = f"lowerdir=/,upperdir={place}/u,workdir={place}/w"
            inner = f"{place}/m/stage"
            enter = f"sh -c 'mkdir -p {inner} && mount --bind {kept} {inner} && exec chroot {place}/m sh {bound}'"
            done = subprocess.run(["unshare", "--mount", "sh", "-c", _INSIDE.format(place, options, enter)])
            if done.returncode:
                return done.returncode
    print("every RUN line was run; no image was built")
    return 0


if __name__ == "__main__":
    sys.exit(main())
