"""The page on versions names the format as it is, and tests that are there."""

from __future__ import annotations

import re
from email.message import Message
from pathlib import Path

from scripts.release_check import faults_of, missing_of
from thinkback.stores.migrations import NEWEST

ROOT = Path(__file__).parents[2]


def test_page_holds() -> None:
    """The newest format, and each test that it refers to."""
    page = (ROOT / "docs" / "versions.md").read_text()
    assert f"now {len(NEWEST.names)} (" in page
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__))
    named = re.findall(r"`(test_\w+)`", page)
    assert named
    assert [] == [name for name in named if f"def {name}(" not in tests]


def test_metadata_is_looked_at() -> None:
    """Another version, no description, no address, and a picture that an index cannot show."""
    said = Message()
    said["Name"], said["Version"] = "thinkback", "1.0"
    assert 3 == len(faults_of(said, "2.0"))
    said["Description-Content-Type"] = "text/markdown"
    said.set_payload("![picture](docs/captures/chat.svg)")
    assert ([], 2) == (faults_of(said, "1.0"), len(missing_of(said)))
    said["Project-URL"] = "Source, https://example.org"
    said.set_payload("![picture](https://example.org/chat.svg)")
    assert [] == missing_of(said)
