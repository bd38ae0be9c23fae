"""The page for contributors names commands and folders that there are."""

from __future__ import annotations

import re
import subprocess

from tests.docs.test_examples import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_command_and_folder_on_the_page_is_there() -> None:
    """A target of the Makefile, a folder of the tree; every folder with code is named."""
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    folders = re.findall(r"^\| `([a-z/]+)` \| ", PAGE, re.MULTILINE)

    assert [] == sorted(set(re.findall(r"`?make ([a-z-]+)", PAGE)) - targets - {"alone"})
    assert [] == [folder for folder in folders if not (ROOT / folder).is_dir()]
    tracked = {path.parts[0] for path in (file.relative_to(ROOT) for file in ROOT.glob("*/*.py"))}
    assert tracked <= {folder.partition("/")[0] for folder in folders}


def test_make_alone_lists_every_command() -> None:
    """Each target with words behind it, those with a hyphen too."""
    told = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    described = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)

    assert described == [line.split()[1] for line in told.splitlines()]
