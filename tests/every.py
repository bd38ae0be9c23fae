"""One test of many cases, where a body costs less than what pytest does around a test of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def every(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``pytest.mark.parametrize``, but in one test, which takes no fixtures: its failure names the first case."""
    given = list(cases)
    assert given

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        def each(**outer: Any) -> None:
            for case in given:
                named = {names: case} if isinstance(names, str) else dict(zip(names, case, strict=True))
                try:
                    test(**outer, **named)
                except BaseException as error:
                    error.add_note(f"case: {named}")
                    raise

        each.__name__, each.__qualname__ = test.__name__, test.__qualname__
        each.__module__, each.__doc__ = test.__module__, test.__doc__
        return each

    return decorated
