"""A keyring for tests: a real backend that keeps its passwords in the file that ``TEST_KEYRING`` names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import keyring.backend
import keyring.errors


class FileKeyring(keyring.backend.KeyringBackend):
    """Passwords in a JSON file, by service and name. While the file says ``locked`` none is told."""

    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        return self._all().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._file.write_text(json.dumps({**self._all(), f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        kept = self._all()
        if kept.pop(f"{service}/{username}", None) is None:
            raise keyring.errors.PasswordDeleteError("not found")
        self._file.write_text(json.dumps(kept))

    @property
    def _file(self) -> Path:
        return Path(os.environ["TEST_KEYRING"])

    def _all(self) -> dict[str, str]:
        text = self._file.read_text() if self._file.is_file() else "{}"
        if text == "locked":
            raise keyring.errors.KeyringLocked("the keyring is locked")
        found: dict[str, str] = json.loads(text)
        return found
