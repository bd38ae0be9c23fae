"""Check a release: `make release-check BASE_IMAGE=NAME@sha256:...`. Builds both distributions, reads their metadata,
installs the wheels into an empty environment with the pinned run-time requirements and runs them there, then writes the
SBOM and the third-party licences of the deployed packages to ``dist``.
"""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from email.message import Message
from pathlib import Path

import thinkback
from scripts.bill_of_materials import write_bill

ROOT = Path(__file__).parent.parent
PROJECTS = (ROOT, ROOT / "referee")
REMOTE = re.compile(r"!\[[^\]]*\]\((?!https://|data:)[^)]*\)|<img[^>]+src=\"(?!https://|data:)")


BASE_IMAGE = re.compile(r"[\w./:-]+@sha256:[0-9a-f]{64}")
PLACEHOLDER = re.compile(r"<[A-Z][A-Z ]+>")


def main() -> int:
    """Run each step; print the faults, and the gaps to fill before the first publication."""
    with tempfile.TemporaryDirectory() as place:
        wheels = [_built(project, Path(place) / "dist") for project in PROJECTS]
        faults = [fault for wheel in wheels for fault in faults_of(_metadata(wheel), thinkback.__version__)]
        faults += base_image_faults(os.environ.get("BASE_IMAGE", ""))
        faults += _run(wheels, Path(place))
        faults += write_bill(Path(place), ROOT / "dist")
        missing = [fault for wheel in wheels for fault in missing_of(_metadata(wheel))]
        missing += placeholders_of("SECURITY.md", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    print("\n".join([*faults, *(f"before it is published: {what}" for what in missing)]))
    print("release-check: failed" if faults else "release-check: the wheels install and run in an empty environment")
    return 1 if faults else 0


def faults_of(said: Message, version: str) -> list[str]:
    """What keeps a distribution with this metadata from being released."""
    name, found = said["Name"], []
    if said["Version"] != version:
        found.append(f"{name}: its version is {said['Version']}, thinkback says {version}")
    if said["Description-Content-Type"] != "text/markdown":
        found.append(f"{name}: its description is not Markdown")
    if not str(said.get_payload() or "").strip():
        found.append(f"{name}: it has no description")
    return found


def missing_of(said: Message) -> list[str]:
    """What the page of an index would lack."""
    name, found = said["Name"], []
    if not said.get_all("Project-URL"):
        found.append(f"{name}: [project.urls] names no address")
    if REMOTE.search(str(said.get_payload())):
        found.append(f"{name}: its README has pictures without an absolute address")
    return found


def base_image_faults(image: str) -> list[str]:
    """An image is released on a base that is named by its digest: a tag can move."""
    if BASE_IMAGE.fullmatch(image):
        return []
    return [f"the base image is {image or 'not named'}: give it by its digest, BASE_IMAGE=NAME@sha256:DIGEST"]


def placeholders_of(name: str, text: str) -> list[str]:
    """Sentences that a person must complete: ``<SECURITY CONTACT>``."""
    return [f"{name}: {found} is for a person to fill in" for found in sorted(set(PLACEHOLDER.findall(text)))]


def _built(project: Path, to: Path) -> Path:
    """The wheel, which is made beside the source distribution."""
    before = set(to.glob("*.whl"))
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(to)], cwd=project, check=True, stdout=2)
    (wheel,) = set(to.glob("*.whl")) - before
    return wheel


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def _run(wheels: list[Path], place: Path) -> list[str]:
    """What fails in an empty environment, where nothing of this checkout is to be found."""
    venv.create(place / "env", with_pip=True)
    bin = place / "env" / "bin"
    pip = [str(bin / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "-qq", "install"]
    pins = str(ROOT / "requirements" / "runtime.txt")
    subprocess.run([*pip, "--require-hashes", "--requirement", pins], check=True)
    subprocess.run([*pip, "--no-deps", "--no-index", *map(str, wheels)], check=True)
    own = {"PATH": os.environ["PATH"], "HOME": str(place), "TERM": "dumb"}
    found = []
    for line in (["thinkback", "--version"], ["thinkback", "demo"], ["thinkback", "endpoints"]):
        done = subprocess.run(
            [str(bin / line[0]), *line[1:]], cwd=place, env=own, capture_output=True, text=True, check=False
        )
        if done.returncode:
            found.append(f"{' '.join(line)} ends with {done.returncode}:\n{done.stderr or done.stdout}")
    return found


if __name__ == "__main__":
    sys.exit(main())
