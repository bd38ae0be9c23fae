"""Fixtures of the gateway's tests: a private CA."""

from tests.drive.conftest import authority as authority
