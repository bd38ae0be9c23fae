"""What is displayed is what happens: over every rule row that is not guessed, and every key of the registry."""

from __future__ import annotations

import functools

import msgspec
import pytest

from tests.compile.build import Talk, call, entry, say, thought
from tests.every import every
from tests.turn.rows import BOOK, DAY, reachable
from thinkback.errors import ThinkbackError
from thinkback.model.blocks import ThinkingBlock
from thinkback.model.target import Settings, Target
from thinkback.settings import KEYS, Layers, Value
from thinkback.turn.effects import FINISHED, OPEN, Effect, configured_effects, effects
from thinkback.turn.plan import History

ROWS = reachable()
BEGUN = Layers().set("session", "session.defaults", 1)
DEMANDING = ("openai", "gpt-5.2")


def at(endpoint: str, model: str) -> Target:
    """A place of the catalogue."""
    return BOOK.target(endpoint, model, on=DAY)


def shown(target: Target, layers: Layers = BEGUN, *, tools: bool = False) -> dict[str, Effect]:
    """What a surface shows of each key."""
    return effects(layers, target.endpoint.settings, target, {}, tools=tools)


def talk(target: Target) -> Talk:
    """A finished turn, a finished turn with a tool, and one under way: the thoughts are numbered 1 to 4."""
    speech = target.endpoint.dialect

    def think(number: int) -> ThinkingBlock:
        text, value = f"thought-{number}", f"c2lnbmF0dXJl{number}"
        if speech != "openai-chat":
            return thought(speech, text, value, f"rs_{number}")
        if target.rule.form == "details":
            return entry(text, signature=value)
        return ThinkingBlock(text, source_field=target.rule.field or "reasoning_content")

    made = Talk().tools("look").user("One?").answer(target, think(1), say("one")).end()
    made.user("Two?").answer(target, think(2), call("c2")).result("c2").answer(target, think(3), say("two")).end()
    return made.user("Three?").answer(target, think(4), call("c4")).result("c4")


@functools.cache
def of_row(id: str) -> tuple[Talk, dict[str, Effect]]:
    """The conversation on a row, and what is shown of each key there."""
    return talk(ROWS[id]), shown(ROWS[id], tools=True)


def sent(id: str, layers: Layers) -> bytes:
    """The next request on a row, or why there is none."""
    return planned(id, layers.effective(ROWS[id].endpoint.settings))


@functools.cache
def planned(id: str, settings: Settings) -> bytes:
    """The same request for equal settings: most keys say nothing to it."""
    try:
        plan = History(of_row(id)[0].commits).plan(ROWS[id], settings, None, {})
    except ThinkbackError as error:
        return error.message.encode()
    return repr(sorted(plan.added_headers.items())).encode() + bytes(plan)


def goes(body: bytes) -> set[int]:
    """The thoughts that a request carries, as text or by their opaque value."""
    return {n for n in range(1, 5) if f"thought-{n}".encode() in body or f"c2lnbmF0dXJl{n}".encode() in body}


@pytest.mark.covers(False)
@every("id", sorted(ROWS))
def test_setting_what_is_displayed_changes_no_byte(id: str) -> None:
    """Every key that shows a value: the same value, set explicitly, gives the same request."""
    before = sent(id, BEGUN)
    changed, silent = [], BEGUN
    for key, effect in of_row(id)[1].items():
        if effect.value is None or "session" in KEYS[key].refused_in:
            continue
        if not effect.scopes and not key.startswith("reasoning."):  # of no request, so they are set at once
            silent = silent.set("session", key, effect.value)
        elif sent(id, BEGUN.set("session", key, effect.value)) != before:
            changed.append((key, effect.value))
    assert before == sent(id, silent)
    assert [] == changed


@pytest.mark.covers(False)
@every("id", sorted(ROWS))
def test_an_unset_setting_names_every_value_that_would_change_a_byte(id: str) -> None:
    """Where no value reproduces the effect; a value that is not named changes nothing."""
    before = sent(id, BEGUN)
    silent = []
    for key, effect in of_row(id)[1].items():
        row = KEYS[key]
        values: tuple[Value, ...] = ("true", "false") if row.type == "boolean" else row.choices
        if not effect.scopes:
            continue
        for value in values:
            if value not in effect.changes and sent(id, BEGUN.set("session", key, value)) != before:
                silent.append((key, value))
    assert [] == silent


# Their reasoning is signatures on calls, which no thought stands for.
ON_CALLS = {"gemini-openai", "gemini-openai-2.5", "gemini-openai-2.5-pro"}


@pytest.mark.covers(False)
@every("id", sorted(ROWS.keys() - ON_CALLS))
def test_each_scope_says_what_goes_back(id: str) -> None:
    """The turn under way and finished turns, as the bytes have them."""
    found = goes(sent(id, BEGUN))
    scopes = {scope.name: scope for scope in of_row(id)[1]["reasoning.includeInContext"].scopes}
    finished = {
        "yes": {1, 2, 3},
        "no": set(),
        "yes, of responses with calls": {2},
        "yes, of turns that used tools": {2, 3},
    }
    expected = finished[scopes[FINISHED].effect] | ({4} if scopes[OPEN].effect != "no" else set())
    assert expected == found


def test_who_decides_is_named() -> None:
    """The rule row where it demands, the layer where a person chose, the row where it decides by itself."""
    kimi = shown(at("kimi", "kimi-k2-thinking"))["reasoning.includeInContext"]
    assert (True, "required by rule kimi-k2-thinking") == (kimi.value, kimi.by)
    row = "required by rule kimi-k2-thinking"
    assert f"open turn: yes, {row}; finished turns: yes, {row}" == str(kimi)
    deepseek = shown(at("deepseek", "deepseek-v4-pro"))["reasoning.includeInContext"]
    assert False is deepseek.value
    assert "finished turns: yes, of turns that used tools, required by rule deepseek-v4" in str(deepseek)
    own = shown(at(*DEMANDING), BEGUN.set("session", "reasoning.includeInContext", False))["reasoning.includeInContext"]
    assert (False, "session") == (own.value, own.by)
    assert "open turn: yes, required by rule openai-gpt-5.1; finished turns: no, session" == str(own)


def test_an_unset_setting_says_what_each_value_would_change() -> None:
    """Claude's finished turns go back by the row; asked for, a switch goes along, so no value is the one in force."""
    found = shown(at("stepfun", "step-3"))["reasoning.includeInContext"]
    assert (None, {"true": "finished turns: yes", "false": "open turn: no"}) == (found.value, dict(found.changes))


def test_what_is_asked_for_is_shown_in_the_request_s_own_words() -> None:
    """By default, chosen, clamped, refused, and where nothing is said."""
    openai = at(*DEMANDING)
    found = shown(openai)
    assert "request: reasoning.effort = low, rule openai-gpt-5.1" in str(found["reasoning.enabled"])
    assert "low" == found["reasoning.effort"].value
    assert "reasoning.summary = auto" in str(found["reasoning.display"])
    assert "store = False" in str(found["session.serverState"])
    layers = BEGUN.set("session", "reasoning.maxTokens", 500).set("session", "text.verbosity", "low")
    found = shown(openai, layers)
    assert "not sent: openai has no way to say it" in str(found["reasoning.maxTokens"])
    assert "text.verbosity = low" in str(found["text.verbosity"])
    claude = shown(at("anthropic", "claude-sonnet-4-5"), BEGUN.set("session", "reasoning.maxTokens", 2048))
    assert "thinking.budget_tokens = 2048" in str(claude["reasoning.maxTokens"])
    cut = shown(openai, BEGUN.set("session", "reasoning.keepLast", 2))["reasoning.keepLast"]
    assert "finished turns: yes, of the last 2 responses, session" in str(cut)
    none = shown(openai, BEGUN.set("session", "reasoning.effort", "none"))["reasoning.effort"]
    assert "reasoning.effort = none" in str(none)


def test_a_request_that_would_be_refused_is_shown_as_such() -> None:
    """Strict mode and an effort exclude each other; a parameter is refused beside what a person asked for."""
    layers = BEGUN.set("user", "reasoning.effort", "high")
    found = shown(at(*DEMANDING), layers)["reasoning.strict"]
    assert "is refused: reasoning.effort = high cannot be sent" in found.changes["true"]
    strict = shown(at(*DEMANDING), layers.set("session", "reasoning.strict", True))["reasoning.effort"]
    assert "request: refused: reasoning.effort = high cannot be sent" in str(strict)


def test_tools_take_reasoning_away_where_the_endpoint_refuses_both() -> None:
    """With tools offered, the effect is another one."""
    target = at("openai-chat", "gpt-5.4")
    found = effects(BEGUN, {}, target, {}, tools=True)["reasoning.enabled"]
    assert "not sent: openai-chat refuses tools together with reasoning" in str(found)


def test_a_guess_is_named_and_an_endpoint_s_strictness_is_shown() -> None:
    """Both are data that a person did not set."""
    target = msgspec.structs.replace(at(*DEMANDING), guessed=True)
    assert "rule openai-gpt-5.1 (guessed)" in str(shown(target)["reasoning.enabled"])
    strict = msgspec.structs.replace(target, endpoint=msgspec.structs.replace(target.endpoint, strict=True))
    assert True is shown(strict)["reasoning.strict"].value


def test_settings_that_no_request_shows_are_what_was_set() -> None:
    """Permissions, display, compaction; and tags, which the rule row says where nobody does."""
    found = shown(at(*DEMANDING), BEGUN.set("user", "permissions.mode", "ask"))
    assert ("ask", "user", "") == (
        found["permissions.mode"].value,
        found["permissions.mode"].by,
        str(found["permissions.mode"]),
    )
    assert ("start", "rule openai-gpt-5.1") == (found["reasoning.tags"].value, found["reasoning.tags"].by)


def test_without_a_place_it_is_what_was_set() -> None:
    """Nothing is known of a rule row then."""
    found = configured_effects(BEGUN.set("user", "reasoning.effort", "high"), {})
    assert ("high", "user", ()) == (
        found["reasoning.effort"].value,
        found["reasoning.effort"].by,
        found["reasoning.effort"].scopes,
    )


def test_a_scope_that_no_single_word_describes_is_said_to_be_partial() -> None:
    """A row of a person's own may demand reasoning of calls in turns that used tools, and leave the rest open."""
    target = at("deepseek", "deepseek-v4-pro")
    rule = msgspec.structs.replace(target.rule, scope="tool-calls", placeholder_on="never")
    odd = msgspec.structs.replace(target, rule=rule)
    found = shown(odd, BEGUN.set("session", "reasoning.includeInContext", False))["reasoning.includeInContext"]
    scopes = {scope.name: scope.effect for scope in found.scopes}
    assert "yes, in part" == scopes[FINISHED]
