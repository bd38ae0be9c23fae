"""Which endpoint is meant where a dialect is known: the one named, its sibling that speaks it, or the maker's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkback.errors import NotFoundError
from thinkback.wire import registry

if TYPE_CHECKING:
    from thinkback.model.rule import Endpoint
    from thinkback.rules import Rulebook


def sibling(book: Rulebook, name: str, dialect: str) -> Endpoint | None:
    """The endpoint ``name``, or the one of the same provider that speaks ``dialect``; ``None`` where there is none.

    Endpoints of one provider share a host, or an id up to a suffix (``azure-openai``, ``azure-openai-chat``).
    """
    try:
        named = book.endpoint(name)
    except NotFoundError:
        return None
    spoken = [place for place in book.endpoints() if place.dialect == dialect]
    if named in spoken:
        return named
    by_id = [place for place in spoken if place.id.startswith(f"{named.id}-") or named.id.startswith(f"{place.id}-")]
    by_host = [place for place in spoken if named.base_url and _host(place) == _host(named)]
    return next(iter((*by_id, *by_host)), None)


def of_dialect(book: Rulebook, name: str, dialect: str) -> Endpoint:
    """As ``sibling``; where there is none, the unknown host if it speaks ``dialect``, else the maker of the dialect."""
    found = sibling(book, name, dialect)
    if found is not None:
        return found
    unknown = book.endpoint("unknown")
    return unknown if unknown.dialect == dialect else book.endpoint(registry.dialect(dialect).maker)


def url_of(endpoint: Endpoint, name: str) -> str:
    """The base URL of ``endpoint``; where every customer has one of their own, one that leads nowhere."""
    return endpoint.base_url or f"https://{name or 'unknown'}.invalid/v1"


def _host(endpoint: Endpoint) -> str:
    return endpoint.base_url.partition("://")[2].partition("/")[0]
