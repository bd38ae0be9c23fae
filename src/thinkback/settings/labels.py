"""Words for thinking: what the provider of a model calls it, in the language of the person who reads it.

Data of ``data/labels.toml`` alone; a language or kind that is missing there is said in words that are there.
"""

from __future__ import annotations

import functools
from importlib import resources

import msgspec

from thinkback.model.target import model_matches

_PLAIN = "thinking"
_MINUTE = 60


class Wording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who calls it what: glob patterns of models, ids of endpoints."""

    kind: str
    source: str
    models: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to call it, in one language; what is empty is said as ``thinking``."""

    name: str = ""
    live: str = ""
    past: str = ""
    done: str = ""
    hidden: str = ""
    cut: str = ""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One language: how it counts, what it calls a turn that goes on or is ``ended``, by its state, and its kinds."""

    group: str
    join: str
    aside: str
    moment: str
    seconds: str
    minutes: str
    token: str
    tokens: str
    working: str
    partial: str
    spent: str
    above: str
    stop: str
    thinking: Kind
    ended: dict[str, str] = {}
    reasoning: Kind = Kind()
    thoughts: Kind = Kind()
    deepthink: Kind = Kind()


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``data/labels.toml``."""

    wording: tuple[Wording, ...]
    language: dict[str, Language]


class Words(msgspec.Struct, frozen=True):
    """Words for one person and one model.

    ``name`` is a heading, ``live`` says that it goes on, ``cut`` that it was broken off; ``done`` and ``hidden`` are
    for what is over.
    """

    name: str
    live: str
    cut: str
    _kind: Kind
    _language: Language

    def so_far(self, seconds: float, tokens: int) -> str:
        """That it goes on, how long by now and about how much: "Thinking, 12 s, ~812 tokens"."""
        parts = (self.live, _time(self._language, seconds), _tokens(self._language, tokens, "~"))
        return self._language.join.join(parts)

    def done(
        self, seconds: float | None = None, tokens: int | None = None, *, estimated: bool = False, shared: bool = False
    ) -> str:
        """That it thought, how long and how much where that is known: "Thought for 12 s, 812 tokens".

        ``estimated``: the tokens are; ``shared``: the time is, as a share of that of the whole response.
        """
        about = "~" if estimated else ""
        time = None if seconds is None else _time(self._language, seconds, "~" if shared else "")
        said = self._kind.past if time is None else self._kind.done.format(time=time)
        return said if not tokens else said + self._language.join + _tokens(self._language, tokens, about)

    @property
    def working(self) -> str:
        """That a turn goes on."""
        return self._language.working

    @property
    def stop(self) -> str:
        """How what runs is stopped."""
        return self._language.stop

    @property
    def spent(self) -> str:
        """That thinking took what the answer was to have, with ``cut`` before it."""
        return f"{self.cut}: {self._language.spent}"

    @property
    def above(self) -> str:
        """That what was shown as an answer was none."""
        return self._language.above

    def ended(self, state: str, *, cut: bool) -> str:
        """How a turn ended; ``cut``: so that what it brought may not be all."""
        state = state.removeprefix("partial_")
        how = self._language.ended.get(state, state.replace("_", " "))
        return f"{self._language.partial}: {how}" if cut else how

    def hidden(self, tokens: int | None = None) -> str:
        """That it thought and the provider shows nothing of it, with how much where that is known."""
        said = self._kind.hidden
        return said if not tokens else said + self._language.aside.format(_tokens(self._language, tokens))


def words(language: str = "en", endpoint_id: str = "", model: str = "") -> Words:
    """The words of a language ("de", also "de_DE.UTF-8") for this endpoint and model; English for an unknown one."""
    labels = packaged()
    spoken = labels.language.get(language.lower().replace("_", "-").partition("-")[0], labels.language["en"])
    kind = _with_fallback(getattr(spoken, kind_of(endpoint_id, model)), spoken.thinking)
    return Words(kind.name, kind.live, kind.cut, kind, spoken)


def kind_of(endpoint_id: str, model: str) -> str:
    """What this model's provider calls it: ``thinking``, ``reasoning``, ``thoughts``, ``deepthink``."""
    for row in packaged().wording:
        if model_matches(model, row.models) or endpoint_id in row.endpoints:
            return row.kind
    return _PLAIN


@functools.cache
def packaged() -> Labels:
    """The table that ships with the package, read on first use and kept."""
    text = resources.files("thinkback.settings").joinpath("data", "labels.toml").read_text("utf-8")
    return msgspec.toml.decode(text, type=Labels)


def _with_fallback(kind: Kind, plain: Kind) -> Kind:
    """``kind`` with the words of ``plain`` where it has none of its own."""
    return Kind(*(getattr(kind, field) or getattr(plain, field) for field in Kind.__struct_fields__))


def _time(language: Language, seconds: float, about: str = "") -> str:
    whole = round(seconds)
    if whole < 1:
        return language.moment
    if whole < _MINUTE:
        return language.seconds.format(seconds=f"{about}{whole}")
    return language.minutes.format(minutes=f"{about}{whole // _MINUTE}", seconds=whole % _MINUTE)


def _tokens(language: Language, tokens: int, about: str = "") -> str:
    if tokens == 1:
        return language.token.replace("1", f"{about}1")
    return language.tokens.format(tokens=about + f"{tokens:,}".replace(",", language.group))
