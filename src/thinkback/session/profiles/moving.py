"""From one place to another: where requests go once a profile has its say, and what may not come along."""

from __future__ import annotations

import msgspec

from thinkback.session.destination import Destination
from thinkback.session.endpoint_config import EndpointConfig, Rulebook, same_server
from thinkback.settings.profiles import Profile


def spot_of(profile: Profile) -> Destination:
    """What ``profile`` says of a place."""
    return Destination(profile.endpoint, profile.model, profile.base_url, profile.key_env)


def moved(place: EndpointConfig, book: Rulebook, spot: Destination) -> EndpointConfig:
    """``place`` with what ``spot`` says. Another host gets no key of the old one. Raises ``NotFoundError``."""
    given: dict[str, str] = {}
    if spot.endpoint or spot.base_url:
        given = {"endpoint": spot.endpoint, "base_url": spot.base_url, "key_env": spot.key_env}
    if spot.key_env:
        given["key_env"] = spot.key_env
    if spot.model:
        given["model"] = spot.model
    return place.changed(book, **given) if given else place


def filled(place: EndpointConfig, book: Rulebook, spot: Destination) -> EndpointConfig:
    """What ``place`` leaves open, as ``spot`` says it; where it names another endpoint or address, nothing."""
    if not (place.endpoint or place.base_url):
        there = moved(place, book, spot)
        return msgspec.structs.replace(
            there,
            model=place.model or there.model,
            api_key=place.api_key,
            headers_given=place.headers_given,
            account=place.account,
        )
    theirs = EndpointConfig(spot.model, spot.endpoint or place.endpoint, spot.base_url)
    is_same_host = same_server(place.address(book), theirs.address(book))
    if place.endpoint != theirs.endpoint or not (place.endpoint or is_same_host):
        return place
    key_env = spot.key_env if is_same_host and place.api_key is None else ""
    return msgspec.structs.replace(place, model=place.model or spot.model, key_env=place.key_env or key_env)
