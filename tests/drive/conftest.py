"""Fixtures for what goes over the network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.drive.servers import Authority
from tests.drive.servers import authority as made_authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Authority]:
    """A private CA; skipped where the openssl program is missing."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl program to make a certificate")
    with made_authority(tmp_path_factory.mktemp("authority")) as made:
        yield made
