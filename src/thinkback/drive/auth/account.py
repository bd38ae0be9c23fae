"""Who pays for a request, as far as it can be told without asking anybody."""

from __future__ import annotations

import re
from collections.abc import Mapping

from thinkback.drive.auth.keys import expires
from thinkback.drive.auth.signin import fingerprint
from thinkback.model.rule import Endpoint
from thinkback.rules.urls import host_matches, split_address

# Headers that name who pays.
_PRINCIPALS = ("openai-organization", "x-organization-id", "chatgpt-account-id")
_PROJECT = re.compile(r"/projects/([^/]+)")


def account(endpoint: Endpoint, base_url: str, headers: Mapping[str, str], key: str | None) -> tuple[str, bool]:
    """(account, whether it is known): the configured one, a stable principal, else a fingerprint of a lasting key."""
    if endpoint.account:
        return endpoint.account, True
    lowered = {name.lower(): value for name, value in headers.items()}
    named = next((lowered[name] for name in _PRINCIPALS if lowered.get(name)), "")
    principal = named or _owner(endpoint, base_url)
    if principal:
        return principal, True
    return ("" if not key or expires(endpoint, key) else fingerprint(key)), False


def _owner(endpoint: Endpoint, base_url: str) -> str:
    """The Azure resource or Google project that an address of such an endpoint names."""
    host, path = split_address(base_url)
    if endpoint.auth.scheme == "azure" and any(host_matches(pattern, host, path) for pattern in endpoint.hosts):
        return host.partition(".")[0]
    project = _PROJECT.search(path) if endpoint.auth.scheme == "google" else None
    return project[1] if project else ""
