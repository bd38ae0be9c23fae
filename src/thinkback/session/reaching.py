"""Whether a place answers requests: its address, its path and the key, tried without asking a model anything.

Promises: nothing is stored, no token is spent, and no key is shown.
"""

from __future__ import annotations

import msgspec

from thinkback.drive.http import Httpx2Transport, Timeouts
from thinkback.errors import CredentialError, MissingPackageError, NetworkError
from thinkback.model.target import Settings, Target, merge_headers
from thinkback.rules.urls import server_of
from thinkback.session.endpoint_config import EndpointConfig, Rulebook
from thinkback.turn.doctor import Finding
from thinkback.turn.plan import History

# What no provider takes for a request: every one refuses it over its form, where path and key are right.
_NOTHING = b"{}"
_TIMEOUTS = Timeouts(connect=5, first_byte=10, total=15)
_WRONG = {
    401: "the key is refused",
    403: "the key is refused, or has no access",
    404: "nothing is served at this address, or not this model",
    405: "nothing is served at this address",
    410: "nothing is served at this address any more",
}


def unreached(place: EndpointConfig, target: Target, settings: Settings, rulebook: Rulebook) -> Finding | None:
    """What keeps the next request to ``target`` from being answered there; ``None`` where nothing does."""
    plan = History([]).plan(target, settings, None, {})
    server = f"{target.endpoint.id} at {server_of(target.base_url)}"
    client = Httpx2Transport(place.proxy, place.verify)
    try:
        headers = merge_headers(place.headers(rulebook, streams=False), plan.added_headers)
        plan = msgspec.structs.replace(plan, base_headers=headers, authenticator=place.authenticator(rulebook))
        plan.authenticate(_NOTHING)
        with client.post(plan.url, plan.headers, _NOTHING, _TIMEOUTS) as response:
            status, kind = response.status, response.headers.get("content-type", "")
    except (CredentialError, MissingPackageError) as error:
        return Finding("key", error.message)
    except NetworkError as error:
        return Finding("address", f"{server}: {error.message}")
    finally:
        client.close()
    if status in _WRONG:
        return Finding("key" if status in (401, 403) else "address", f"{server} answered {status}: {_WRONG[status]}")
    if "html" in kind:
        return Finding("address", f"{server} answered with a web page: {target.base_url} is no address of an API")
    return None
