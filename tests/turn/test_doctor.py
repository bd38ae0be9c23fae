"""Examination: what stands between a history and its next request, and the commits that mend it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from tests.turn.playbook import NOW, commits_of, rule, target
from thinkback.compile.translate import INTERRUPTED
from thinkback.log.seal import head_of, seal
from thinkback.model.blocks import Origin, Text, ThinkingBlock, ToolCall, ToolResult
from thinkback.model.commits import Commit, Draft, Message, Repair, Response, Step, TurnEnded
from thinkback.model.rule import Endpoint
from thinkback.model.target import Settings, Target
from thinkback.turn.doctor import Examination, examine
from thinkback.turn.plan import History

HOME = Origin("openai-chat", "https://house.example/v1", "thinker")
AWAY = Origin("openai-chat", "https://elsewhere.example/v1", "thinker")
THERE = Origin("anthropic", "https://house.example/v1", "thinker")
CALL = ToolCall("c1", "look", "{}")
NATIVE = Endpoint("house", "House", "https://house.example/v1", dialect="anthropic")


ALTERNATING = target(rule(form="none", missing=()), endpoint=msgspec.structs.replace(NATIVE, dialect="bedrock"))


def response(name: str, *blocks: Text | ThinkingBlock | ToolCall, origin: Origin = HOME) -> list[Draft]:
    """A complete response called ``name``."""
    kinds = {Text: "assistant", ThinkingBlock: "reasoning", ToolCall: "tool_call"}
    header = Draft("response", Response(origin, content="text", blocks=len(blocks)), name)
    return [header, *(Draft(kinds[type(block)], block, name, at) for at, block in enumerate(blocks))]  # type: ignore[arg-type]


def thought(text: str = "Hm.", signature: str = "") -> ThinkingBlock:
    """A piece of reasoning as chat completions have it, or signed."""
    return ThinkingBlock(text, source_field="thinking" if signature else "reasoning_content", signature=signature)


def asked(*drafts: Draft, ended: bool = True) -> list[Draft]:
    """A turn."""
    return [Draft("user", Message("Why?")), *drafts, *([Draft("turn_ended", TurnEnded("completed"))] if ended else [])]


def kinds(found: Examination) -> list[str]:
    """The kinds of the findings."""
    return [finding.kind for finding in found.findings]


def mended(commits: Sequence[Commit], found: Examination) -> list[Commit]:
    """The log with what mends it."""
    return [*commits, *seal(Step("mend", found.drafts, NOW), head_of(commits))]


def native(**changed: object) -> Target:
    """A place that takes blocks in their place, in a dialect of alternating roles."""
    taken = {"form": "native", "missing": ("none",), "need_signature": ("thinking",), **changed}
    return target(rule(**taken), endpoint=NATIVE)


def test_a_history_that_goes_as_it_is_has_nothing_wrong() -> None:
    """Reasoning of this place, answered calls and a finished turn need nothing."""
    commits = commits_of(asked(*response("a", thought(), Text("So."))))

    assert Examination((), ()) == examine(commits, target(), Settings())


def test_blocks_of_another_place_are_declared_void() -> None:
    """What the target can never read gets a repair, and then nothing is wrong any more."""
    commits = commits_of(asked(*response("a", thought(), Text("So."), origin=AWAY)))

    found = examine(commits, target(), Settings())

    finding = next(finding for finding in found.findings if finding.kind == "unreadable")
    assert finding.wrong
    assert ("void", commits[2].hash) == (finding.remedy, finding.block)
    assert "minted by https://elsewhere.example/v1" in finding.text
    (draft,) = found.drafts
    repair = Repair("block", (commits[2].hash,), "found before a request was made", target().base_url, "thinker")
    assert (("repair", repair), {"unreadable", "stand-in"}) == ((draft.kind, draft.value), set(kinds(found)))
    again = examine(mended(commits, found), target(), Settings())
    assert (False, ()) == (any(finding.wrong for finding in again.findings), again.drafts)


def test_a_repair_is_for_one_target() -> None:
    """What is void for one model says nothing about another."""
    commits = commits_of(asked(*response("a", thought(), Text("So."), origin=AWAY)))
    log = mended(commits, examine(commits, target(), Settings()))

    assert "unreadable" in kinds(examine(log, target(model="other"), Settings()))


def test_what_settings_leave_out_is_no_fault() -> None:
    """Reasoning that could go and shall not is told, and left alone."""
    commits = commits_of(asked(*response("a", thought(), Text("So."))))

    found = examine(commits, target(rule(later="may", missing=())), Settings())

    assert (["dropped"], ()) == (kinds(found), found.drafts)
    assert not found.findings[0].wrong


def test_a_block_of_which_something_goes_is_not_void() -> None:
    """Without a known origin the opaque value stays, and the text goes all the same."""
    unknown = Origin("openai-chat", "", "")
    commits = commits_of(asked(*response("a", thought("Hm.", "c2ln"), Text("So."), origin=unknown)))

    found = examine(commits, target(rule(field="thinking")), Settings())

    assert (["dropped"], ()) == (kinds(found), found.drafts)


def test_blocks_of_a_response_that_did_not_complete_are_left_alone() -> None:
    """They are withheld whatever the target reads."""
    cut = Response(HOME, complete=False, content="text", blocks=1)
    commits = commits_of(asked(Draft("response", cut, "a"), Draft("reasoning", thought("Hm.", "c2ln"), "a", 0)))

    found = examine(commits, native(), Settings())

    assert {"dropped"} == set(kinds(found))
    assert () == found.drafts


def test_what_is_bound_to_another_prefix_is_void() -> None:
    """A block whose system prompt changed since cannot be read any more; one that still fits can."""
    bound = native(prefix_bound=True, open_turn="should", later="should")
    turn = asked(*response("a", thought("Hm.", "c2ln"), Text("So."), origin=THERE))
    record = History(commits_of([Draft("user", Message("Why?"))])).plan(bound, Settings(), None, {}).record()
    turn.insert(1, Draft("request", record, "a"))
    fits, fits_not = commits_of(turn), commits_of([Draft("system", Message("New.")), *turn])

    assert [] == kinds(examine(fits, bound, Settings()))
    found = examine(fits_not, bound, Settings())
    assert ["unreadable"] == kinds(found)
    assert "bound to its prefix" in found.findings[0].text
    assert [("repair", (fits_not[4].hash,))] == [(d.kind, getattr(d.value, "blocks", ())) for d in found.drafts]


def test_calls_without_results_are_closed() -> None:
    """An open call gets a recorded result, and its turn an end, as the next turn would give it."""
    commits = commits_of(asked(*response("a", thought(), CALL), ended=False))

    found = examine(commits, target(), Settings())

    assert [("call", "look has no result", "close")] == [(f.kind, f.text, f.remedy) for f in found.findings]
    assert commits[3].hash == found.findings[0].block
    result, end = (draft.value for draft in found.drafts)
    assert (INTERRUPTED, "interrupted") == (getattr(result, "content", ""), getattr(end, "state", ""))
    assert Examination((), ()) == examine(mended(commits, found), target(), Settings())


def test_a_call_of_an_older_turn_is_closed_where_it_stands() -> None:
    """An adopted history may have lost a result long ago; the request stays the same, and the log says so now."""
    commits = commits_of([*asked(*response("a", thought(), CALL)), *asked(*response("b", thought(), Text("So.")))])

    found = examine(commits, target(), Settings())

    assert (["call"], [("tool_result", "a")]) == (kinds(found), [(d.kind, d.response) for d in found.drafts])
    after = mended(commits, found)
    assert [] == kinds(examine(after, target(), Settings()))
    bodies = [bytes(History(log).plan(target(), Settings(), None, {})) for log in (commits, after)]
    assert bodies[0] == bodies[1]


def test_one_of_two_calls_without_ids_may_be_open() -> None:
    """Where a host gives no ids, results are counted in order."""
    call = msgspec.structs.replace(CALL, id="")
    turn = asked(*response("a", thought(), call, call), Draft("tool_result", ToolResult("", "7"), "a"))

    assert ["call"] == kinds(examine(commits_of(turn), target(), Settings()))


@pytest.mark.parametrize("owner", ["", "gone"])
def test_a_result_without_a_call_is_told(owner: str) -> None:
    """It never reaches a provider, so nothing needs to be done."""
    stray = Draft("tool_result", ToolResult("c9", "7"), owner)
    answered = Draft("tool_result", ToolResult("c1", "7"))
    commits = commits_of(asked(*response("a", thought(), CALL), answered, stray))

    found = examine(commits, target(), Settings())

    assert (["result"], ()) == (kinds(found), found.drafts)
    assert not found.findings[0].wrong


@pytest.mark.parametrize(("place", "order"), [(ALTERNATING, ["order"]), (target(), [])])
def test_a_history_that_begins_with_an_answer_is_wrong_where_roles_alternate(place: Target, order: list[str]) -> None:
    """Such dialects demand a user message first; nothing that is appended could mend that."""
    commits = commits_of(response("a", Text("Hello.")))

    found = examine(commits, place, Settings())

    assert order == [finding.kind for finding in found.findings if finding.wrong]
    assert () == found.drafts


def test_an_empty_log_is_sound() -> None:
    """Nothing was said yet."""
    assert Examination((), ()) == examine([], native(), Settings())


def test_a_request_that_would_be_refused_is_told() -> None:
    """Where required reasoning can neither go nor be replaced, the refusal is the finding."""
    demanding = target(rule(missing=()))
    commits = commits_of(asked(*response("a", thought(), CALL, origin=AWAY), ended=False))

    found = examine(commits, demanding, Settings())

    assert ["refused", "call"] == kinds(found)
    assert found.findings[0].wrong
