"""The secret of the gateway: read where it is said to be, made once, and never from a file that others may read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from thinkback.errors import CredentialError
from thinkback.servers.gateway.secrets.secret import own_secret, read_secret

TEXT = "a-secret-of-the-tests-that-is-long-enough"


def test_a_secret_is_read_from_the_environment_or_a_file(tmp_path: Path) -> None:
    """Both are taken without the space around them."""
    path = tmp_path / "given"
    path.write_text(f"{TEXT}\n")
    path.chmod(0o600)
    assert TEXT.encode() == read_secret(f"file:{path}", {})
    assert TEXT.encode() == read_secret("env:SECRET", {"SECRET": f" {TEXT} "})


def test_a_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    """Eight that start together get the same one; nothing else is left in the directory."""
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(own_secret(tmp_path / "store"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (made,) = (tmp_path / "store").iterdir()
    assert {made.read_bytes().strip()} == set(found)
    assert 0o600 == made.stat().st_mode & 0o777
    assert 64 == len(found[0])


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    """The error names the file and what to do, and not the secret."""
    path = tmp_path / "secret"
    path.write_text(TEXT)
    path.chmod(mode)
    with pytest.raises(CredentialError, match=f"mode 0{mode:o}") as caught:
        own_secret(tmp_path)
    assert TEXT not in str(caught.value)
    assert f"chmod 600 {path}" in caught.value.next_actions


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("env:ABSENT", "variable ABSENT, which is not set"),
        ("env:SHORT", "too short"),
        ("file:/nowhere/at/all", "cannot be read"),
        ("file:LARGE", "more than 4096 bytes"),
        (TEXT, "in an unknown form"),
        ("env:", "in an unknown form"),
    ],
)
def test_what_is_no_secret_is_refused(tmp_path: Path, source: str, what: str) -> None:
    """Absent, short, endless or named in another way: each is told, and what was given is not repeated."""
    large = tmp_path / "large"
    large.write_bytes(b"x" * 5000)
    large.chmod(0o600)
    with pytest.raises(CredentialError, match=what) as caught:
        read_secret(source.replace("LARGE", str(large)), {"SHORT": "brief-one"})
    assert TEXT not in str(caught.value)
    assert "brief-one" not in str(caught.value)


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Where the secret cannot be made, the error says where and why."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CredentialError, match="cannot be created"):
        own_secret(tmp_path / "file" / "store")
    assert os.listdir(tmp_path) == ["file"]
