"""How a turn is to look: what a person chose, read afresh at each turn. Nothing here reaches the wire or the log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from thinkback.model.target import Settings
    from thinkback.settings.labels import Words

Mode: TypeAlias = Literal["full", "collapsed", "hidden"]
ThemeChoice: TypeAlias = Literal["auto", "dark", "light", "plain"]


class Look(NamedTuple):
    """``mode`` is how thinking is shown, ``is_chosen`` whether somebody said so. ``width`` 0 is the terminal's, and
    ``colours`` ``None`` leaves it to the terminal.

    ``language``, ``endpoint`` and ``model`` choose the words.
    """

    mode: Mode = "full"
    theme: ThemeChoice = "auto"
    width: int = 0
    language: str = "auto"
    endpoint: str = ""
    model: str = ""
    colours: bool | None = None
    is_chosen: bool = False


def look_of(settings: Settings, endpoint: str = "", model: str = "") -> Look:
    """The look that ``settings`` ask for; ``reasoning.includeInResponse=false`` hides thinking whatever the mode."""
    return Look(
        mode=settings.display_reasoning if settings.include_in_response else "hidden",
        theme=settings.display_theme,
        language=settings.display_language,
        endpoint=endpoint,
        model=model,
        is_chosen="display.reasoning" in settings.explicit,
    )


def unfolded(look: Look) -> Look:
    """``look`` where nobody can unfold a line, which keeps the text from a reader who did not choose it."""
    return look._replace(mode="full") if look.mode == "collapsed" and not look.is_chosen else look


def words_for(look: Look) -> Words:
    """The words for thinking that ``look`` asks for."""
    from thinkback.settings.labels import words

    spoken = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    language = next(filter(None, spoken), "en") if look.language == "auto" else look.language
    return words(language, look.endpoint, look.model)
