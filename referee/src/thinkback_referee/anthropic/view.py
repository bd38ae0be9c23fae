"""A Messages request as the house model sees it, and the words of its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..jsons import as_list, as_object, as_objects, as_text, compact
from ..persona import View, offered
from .ledger import Ledger
from .request import THINKING, Block, Message, Request, blocks_of
from .trace import PREFIX, Trace, trace


def view_of(request: Request, ledger: Ledger) -> View:
    """The conversation, with the thoughts that the provider would decrypt and show."""
    found = trace(request, ledger)
    last = request.messages[-1].turn
    places = _places(request, ledger, found)
    turn, tools = request.open_turn, as_objects(request.body.get("tools"))
    return View(
        asked=_asked(request.messages),
        turn=last,
        steps=len(turn),
        rounds=sum(bool(message.calls) for message in turn),
        tools=tuple(offered(tool, "input_schema") for tool in tools if isinstance(tool.get("input_schema"), dict)),
        choice=_choice(as_object(request.body.get("tool_choice"))),
        thinks=request.thinks,
        results=_results(request),
        notes=notes_of(request, ledger, found),
        readable=bool(places),
        began=bool(turn) and turn[0].index in places,
        # words beside results belong to the turn in which the calls were made
        opened=_asked(request.messages[: turn[0].index]) if turn else "",
    )


def notes_of(request: Request, ledger: Ledger, found: Trace) -> tuple[str, ...]:
    """The thoughts that the model gets to read, oldest first."""
    if not request.caller.host.signed:
        return tuple(block.text for message in _visible(request) for block in message.thinking)
    kept = [fate for fate in found.fates if fate.block is not None and not fate.reason]
    return tuple(fate.seal.thought for fate in kept if fate.message.turn in request.visible_turns)


def prompt_words(request: Request, ledger: Ledger, found: Trace) -> list[str]:
    """The prompt as words: tools, system, then each block; of thoughts those that the model gets to read."""
    words = [*compact(as_list(request.body.get("tools"))).split(), *_system_words(request.body.get("system"))]
    thoughts = {
        id(fate.block): fate.seal.thought
        for fate in found.fates
        if not fate.reason and fate.message.turn in request.visible_turns
    }
    for message in request.messages:
        words.append(f"<{message.role}>")
        for block in message.blocks:
            words += thoughts.get(id(block), "").split() if block.kind in THINKING else _block_words(block)
    return words


def _visible(request: Request) -> list[Message]:
    return [message for message in request.assistants if message.turn in request.visible_turns]


def _places(request: Request, ledger: Ledger, found: Trace) -> set[int]:
    """The first messages of visible turns that have thoughts, or had them when they were minted.

    A turn's first thought is where the house model makes its note; thoughts between tools alone hold none.
    """
    if not request.caller.host.signed:
        having = {message.index for message in _visible(request) if message.thinking or ledger.answers(message)}
    else:
        having = {fate.message.index for fate in found.fates if fate.reason in ("", PREFIX)}
    first = {message.turn: message.index for message in reversed(_visible(request))}
    return having & set(first.values())


def _asked(messages: Sequence[Message]) -> str:
    """What the user said last; messages of a role in a row are one, as the service reads them."""
    said: list[str] = []
    for message in reversed(messages):
        if said and message.role != "user":
            break
        if message.role == "user" and message.text:
            said.insert(0, message.text)
    return "\n".join(said)


def _choice(choice: Mapping[str, object]) -> str:
    return "none" if choice.get("type") == "none" else as_text(choice.get("name"))


def _results(request: Request) -> tuple[tuple[str, str], ...]:
    last = request.messages[-1].turn
    blocks = [block for message in request.messages if message.turn == last for block in message.blocks]
    names = {block.raw.get("id"): as_text(block.raw.get("name")) for block in blocks if block.kind == "tool_use"}
    answers = [block for block in blocks if block.kind == "tool_result"]
    return tuple((names.get(block.raw.get("tool_use_id"), ""), result_text(block)) for block in answers)


def result_text(block: Block) -> str:
    """The text of a result."""
    return "".join(part.text for part in blocks_of(0, block.raw.get("content")) if part.kind == "text")


def _block_words(block: Block) -> list[str]:
    if block.kind == "tool_result":
        return result_text(block).split()
    if block.kind == "tool_use":
        return [as_text(block.raw.get("name")), *compact(as_object(block.raw.get("input"))).split()]
    return block.text.split()


def _system_words(system: object) -> list[str]:
    return " ".join(block.text for block in blocks_of(0, system)).split()
