"""The page on versions names the format as it is, and tests that are there."""

from __future__ import annotations

import re
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

import pytest

from scripts.bill_of_materials import licence_texts, render_component
from scripts.release_check import base_image_faults, faults_of, missing_of, placeholders_of
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


@pytest.mark.parametrize("image", ["", "python:3.13-slim", "python@sha256:abc"])
def test_a_release_names_its_base_image_by_digest(image: str) -> None:
    """A tag can move, so a release without a digest fails."""
    assert 1 == len(base_image_faults(image))
    assert [] == base_image_faults(f"registry.example:5000/python:3.13-slim@sha256:{'0a' * 32}")


def test_sentences_for_a_person_are_named() -> None:
    """SECURITY.md has a contact, a period and a support address that only a person can fill in."""
    found = placeholders_of("SECURITY.md", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert found
    assert [] == placeholders_of("SECURITY.md", "write to security@example.org")


def test_licences_are_rendered_with_their_texts() -> None:
    """A package's declared licence, and the text that it installs."""
    texts = licence_texts(distribution("click"))
    declared = {"name": "click", "version": "8", "licenses": [{"license": {"id": "BSD-3-Clause"}}]}

    assert "Redistribution" in texts[0]
    assert render_component(declared, texts).startswith("click 8: BSD-3-Clause\n------")
    either = {"name": "x", "version": "1", "licenses": [{"expression": "MIT OR Apache-2.0"}]}
    assert "x 1: MIT OR Apache-2.0\n----------------------\n" == render_component(either, [])
