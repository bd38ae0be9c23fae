"""``/model`` and ``/endpoint``: where the next request goes. The history stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from thinkback.cli import terminal
from thinkback.cli.chat.slash.row import Slash, words
from thinkback.cli.config import endpoints
from thinkback.cli.decisions import rule_text
from thinkback.session.destination import Destination

if TYPE_CHECKING:
    from thinkback.cli.chat.chat import Chat

# Models that are named in a sentence.
_SHOWN = 8
ENDPOINT = "endpoint [ID [MODEL]] [--base-url URL] [--key-env NAME]"


def model(chat: Chat, rest: str) -> None:
    """Show or change the model."""
    named = words(rest, "model [NAME]", most=1)
    if named:
        chat.session.use(model=named[0])
    _print(chat)
    if not named:
        known = list(_known_models(chat))
        if known:
            terminal.note(f"known here: {', '.join(known)}")


def endpoint(chat: Chat, rest: str) -> None:
    """Show or change the endpoint; its model with it, since the old one is seldom known there."""
    given = words(rest, ENDPOINT, most=6)
    base_url, key_env = _option(given, "--base-url"), _option(given, "--key-env")
    if len(given) > 2 or any(word.startswith("--") for word in given):
        raise click.UsageError(f"usage: /{ENDPOINT}")
    if not (given or base_url or key_env):
        endpoints.print_endpoints(chat.store.rulebook.endpoints(), everything=False)
        terminal.out("/endpoint ID changes to one; `thinkback endpoints --all` (in a shell) lists every one in full")
    else:
        name, new_model = (*given, "", "")[:2]
        to = chat.stand_in.at(Destination(name, new_model, base_url.rstrip("/")), base_url)
        chat.session.use(
            endpoint=to.endpoint or None,
            model=to.model or _model_at(chat, to.endpoint) or None,
            base_url=to.base_url or None,
            key_env=key_env or None,
        )
    _print(chat)


def _model_at(chat: Chat, endpoint: str) -> str:
    """The model to ask at ``endpoint``, by the person's word; nothing where the one of now is known there too."""
    book = chat.store.rulebook
    known = book.served(book.endpoint(endpoint).id) if endpoint else ()
    now = chat.session.conversation.configure().place.model
    if not known or not now or now in known:
        return ""
    if not chat.reader.is_live:
        raise click.UsageError(
            f"{now} is not known at {endpoint}: /endpoint {endpoint} MODEL, with one of {_some(known)}"
        )
    terminal.note(f"{now} is not known at {endpoint}; known are {_some(known)}")
    named = chat.reader.ask("model> ", known[0]).strip()
    if not named:
        raise click.UsageError("no model was named; nothing was changed")
    return named


def _some(known: Sequence[str]) -> str:
    return ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")


def _option(given: list[str], name: str) -> str:
    """The value behind ``name``, which is taken out with it."""
    if name not in given:
        return ""
    at = given.index(name)
    if at + 1 >= len(given):
        raise click.UsageError(f"{name} wants a value: usage is /{ENDPOINT}")
    value = given[at + 1]
    del given[at : at + 2]
    return value


def _print(chat: Chat) -> None:
    place = chat.session.conversation.configure().place
    if not place.is_complete:
        where = place.endpoint or place.base_url or "no endpoint yet: /endpoint ID"
        terminal.out(f"{where}, {place.model or 'no model yet: /model NAME'}")
        return
    target = chat.session.target
    terminal.out(f"{target.endpoint.id} {target.model} ({target.base_url}, {rule_text(target)})")


def _known_models(chat: Chat) -> Iterable[str]:
    """Names of models that the catalogue knows at this endpoint, and those that the session has used."""
    from thinkback.model.commits import Request

    place = chat.session.conversation.configure().place
    here = place.resolved(chat.store.rulebook).id if place.endpoint or place.base_url else ""
    used = (
        commit.value.target["model"]
        for commit in chat.session.log(kinds=("request",))
        if isinstance(commit.value, Request) and commit.value.target.get("endpoint") == here
    )
    return dict.fromkeys((*used, *(chat.store.rulebook.served(here) if here else ())))


def _models(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    return () if before else _known_models(chat)


def _endpoints(chat: Chat, before: Sequence[str]) -> Iterable[str]:
    if not before:
        return [row.id for row in chat.store.rulebook.endpoints()]
    return [] if before[-1].startswith("--") else ["--base-url", "--key-env"]


ROWS = (
    Slash("model", "model [NAME]", "Show or change the model.", model, _models),
    Slash("endpoint", ENDPOINT, "List the endpoints, or change where requests go.", endpoint, _endpoints),
)
