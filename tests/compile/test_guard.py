"""The guard: dialect, endpoint, model and account."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.compile.build import (
    HERE,
    UNKNOWN,
    URL,
    Talk,
    build,
    call,
    entry,
    native,
    rule,
    say,
    settings,
    signed_call,
    target,
    think,
)
from thinkback.compile.guard import NO_ORIGIN, VALID, check
from thinkback.model.blocks import Carrier, Origin, Text, ToolCall, Unknown
from thinkback.model.rule import Guard


def changed(**fields: Any) -> Any:
    """``HERE`` with fields changed."""
    return msgspec.structs.replace(HERE, **fields)


@pytest.mark.parametrize(
    ("origin", "reason"),
    [
        (changed(dialect="anthropic"), "minted in the anthropic dialect, target speaks openai-chat"),
        (changed(endpoint="https://x.example"), f"minted by https://x.example, target is {URL}"),
        (changed(requested_model="m2", served_model="m2-1"), "minted by model m2, target is m1"),
        (changed(requested_model="m2", served_model="m1"), ""),
        (changed(served_model="m1-2026"), ""),
        (changed(account="beta", account_known=False), ""),
    ],
)
def test_differences(origin: Any, reason: str) -> None:
    """A carrier is valid only where dialect, endpoint and requested or served model are those of its origin."""
    verdict = check(origin, target())
    assert verdict == VALID if not reason else (False, False, reason) == tuple(verdict)


@pytest.mark.parametrize(("reads", "valid"), [(("m*",), True), (("M2",), True), (("n*",), False), ((), False)])
def test_models_that_read_each_other(reads: tuple[str, ...], valid: bool) -> None:
    """``reads`` are patterns of further models, requested or served, whose blocks the target takes."""
    row = rule(guard=Guard(reads=reads))
    assert valid is check(changed(requested_model="m2", served_model=""), target(row)).carriers
    assert valid is check(changed(requested_model="x", served_model="m2"), target(row)).carriers


def test_a_model_that_is_not_read_in_spite_of_it() -> None:
    """``refuses`` takes models out of what ``reads`` lets in; a model always reads itself."""
    row = rule(guard=Guard(reads=("m*",), refuses=("m2*", "m1")))
    assert not check(changed(requested_model="m2-new", served_model=""), target(row)).carriers
    assert not check(changed(requested_model="m3", served_model="m2"), target(row)).carriers
    assert check(changed(requested_model="m3", served_model="m3"), target(row)).carriers
    assert check(HERE, target(row)).carriers


@pytest.mark.parametrize(
    ("hosts", "endpoint", "valid"),
    [
        (("https://*.example/*",), "https://twin.example/v1", True),
        (("https://*.example/*",), "https://other.test/v1", False),
        ((), "https://twin.example/v1", False),
    ],
)
def test_hosts_that_read_each_other(hosts: tuple[str, ...], endpoint: str, valid: bool) -> None:
    """Their accounts cannot be compared, so they do not count; the model does."""
    row = rule(guard=Guard(hosts=hosts, account=True, unknown_account="drop"))
    assert valid is check(changed(endpoint=endpoint, account="theirs"), target(row)).carriers
    assert not check(changed(endpoint=endpoint, requested_model="m2", served_model=""), target(row)).carriers


@pytest.mark.parametrize(
    ("minted", "named", "valid"), [("ann", "ann", True), ("ann", "bob", False), ("ann", "", False)]
)
def test_end_users(minted: str, named: str, valid: bool) -> None:
    """Where the rule says where a request names its end user, blocks of another one stay away."""
    row = rule(guard=Guard(end_user="metadata.user_id"))
    talk = Talk(changed(end_user=minted)).turn("a").user("b")
    params: dict[str, Any] = {"metadata": {"user_id": named}} if named else {"metadata": {"user_id": 7}}
    built = build(talk, row, params=params)
    assert ["on a" if valid else None] == built.fields
    assert valid or ["minted for another end user"] == built.reasons


@pytest.mark.parametrize(
    ("mine", "theirs", "mode", "valid"),
    [
        (("acme", True), ("beta", True), "try", False),
        (("acme", True), ("beta", True), "drop", False),
        (("k1", False), ("k2", False), "try", True),
        (("k1", False), ("k2", False), "drop", False),
        (("acme", True), ("k2", False), "try", True),
        (("acme", True), ("k2", False), "drop", False),
        (("acme", True), ("acme", True), "drop", True),
    ],
)
def test_accounts(mine: tuple[str, bool], theirs: tuple[str, bool], mode: Any, valid: bool) -> None:
    """Two known accounts must be equal; two that are known only as key hashes are tried or dropped by the rule."""
    row = rule(guard=Guard(account=True, unknown_account=mode))
    to = target(row, account=mine[0], account_known=mine[1])
    verdict = check(changed(account=theirs[0], account_known=theirs[1]), to)
    assert valid is verdict.carriers
    assert verdict.reason == (VALID.reason if valid else "minted under another account")


@pytest.mark.parametrize(("known", "valid"), [(True, False), (False, True)])
def test_named_accounts_that_differ_are_different_under_any_rule(*, known: bool, valid: bool) -> None:
    """Opaque values stay away; readable text is bound to no account unless the rule says so."""
    verdict = check(changed(account="theirs", account_known=known), target(rule(), account="mine", account_known=True))
    assert (valid, True) == (verdict.carriers, verdict.text)
    talk = Talk(changed(account="theirs", account_known=known)).user("a").reply(signed_call("c1", "SIG")).result("c1")
    to = target(rule(), account="mine", account_known=True)
    assert valid is (b"SIG" in build(talk, to).body)


def test_unknown_origin() -> None:
    """Without an origin readable text may be replayed, a carrier may not."""
    assert NO_ORIGIN == check(UNKNOWN, target())
    talk = Talk(UNKNOWN).turn("a", think("text", signature="sig"), think("", signature="bare"), say("x")).user("b")
    built = build(talk)
    assert built.fields == ["text"]
    assert [(each.action, each.what) for each in built.decisions] == [
        ("field", "reasoning"),
        ("drop", "signature"),
        ("drop", "signature"),
    ]
    assert built.reasons[2] == NO_ORIGIN.reason


def test_unknown_origin_in_details() -> None:
    """Entries of unknown origin are not sent as entries; their text may go beside, signed kinds not even that."""
    row = rule(form="details", field="reasoning", need_signature=("anthropic-claude-v1",))
    signed, free = entry("signed", signature="sig"), entry("free", format="x", signature="sig2")
    built = build(Talk(UNKNOWN).turn("a", signed, free, say("x")).user("b"), row)
    assert built.messages[1] == {"role": "assistant", "content": "x", "reasoning": "free"}
    assert {"sig", "sig2"}.isdisjoint(str(built.body))
    assert sorted(built.actions) == ["drop", "drop", "drop", "field"]


def test_what_fails_is_dropped_with_what_ties_its_neighbours() -> None:
    """Of a foreign response no carrier goes out, on whatever block; its calls are written anew."""
    held = signed_call()
    talk = Talk(changed(requested_model="m2", served_model="m2")).user("a").reply(think("t"), held).result()
    built = build(talk)
    assert b"abc" not in built.body
    assert built.messages[1]["tool_calls"][0]["id"] == "c1"
    assert {each.reason for each in built.decisions} == {"minted by model m2, target is m1"}


def test_what_is_around_a_foreign_call_stays_away() -> None:
    """A foreign call is written anew also where we know of nothing that it carries: its maker's extras are its own."""
    wire = '{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"},"extra":"x"}'
    foreign = changed(requested_model="m2", served_model="m2")
    for origin, goes in ((HERE, True), (UNKNOWN, False), (foreign, False)):
        assert goes is (b"extra" in build(Talk(origin).user("a").reply(call(wire=wire)).result()).body)


def test_a_carrier_on_a_call_goes_back_inside_it() -> None:
    """A call of this very origin goes back verbatim, its carrier with it."""
    held = signed_call()
    built = build(Talk().user("a").reply(held, call("c2")).result().result("c2"))
    assert built.body.count(b"abc") == 1
    assert [(each.action, each.what, each.message) for each in built.decisions] == [("native", "thought_signature", 1)]


def test_a_carrier_without_a_place() -> None:
    """A carrier on a block that this dialect writes without it is dropped, and said so."""
    text = Text("x", carriers=(Carrier("item_id", "msg_1"),))
    plain = ToolCall("c1", "look", "{}", carriers=(Carrier("item_id", "fc_1"),))
    built = build(Talk().user("a").reply(text, plain).result())
    assert built.actions == ["drop", "drop"]
    assert b"_1" not in built.body
    assert build(Talk(HERE).user("a").reply(text, plain, complete=False).end("failed")).actions == ["drop", "drop"]


def test_unknown_items_go_to_their_maker_only() -> None:
    """An item of unknown kind is passed through to its maker; elsewhere it stays away with what it carries."""
    item = Unknown('{"type":"x"}')
    held = Unknown('{"type":"x"}', carriers=(Carrier("item_id", "id1"),))
    foreign = changed(requested_model="m2", served_model="m2")
    cases: list[tuple[Any, Any, list[str]]] = [
        (HERE, item, []),
        (UNKNOWN, item, []),
        (foreign, item, ["drop"]),
        (HERE, held, ["native"]),
        (UNKNOWN, held, ["drop", "drop"]),
        (foreign, held, ["drop", "drop"]),
    ]
    for origin, block, actions in cases:
        built = build(Talk(origin).turn("a", block, say("x")).user("b"))
        assert (b'{"type":"x"}' in built.body) is ("drop" not in actions)
        assert built.actions == actions
    assert [each.what for each in build(Talk(foreign).turn("a", held).user("b")).decisions] == ["text", "item_id"]
    assert build(Talk().turn("a", held, complete=False).user("b")).actions == ["drop", "drop"]


def test_a_kind_of_call_that_cannot_be_rebuilt_stays() -> None:
    """A foreign call is rebuilt from its neutral form only where it is a function call."""
    custom = call(wire='{"id":"c1","type":"custom","custom":{"name":"look","input":"x"}}')
    odd = call("c2", wire='{"id":"c2","type":null,"function":{"name":"look","arguments":"{}"}}')
    built = build(Talk(UNKNOWN).user("a").reply(custom, odd, call("c3")).result().result("c2").result("c3"))
    assert [each["type"] for each in built.messages[1]["tool_calls"]] == ["custom", None, "function"]


@pytest.mark.parametrize(
    ("mode", "blocks", "field"),
    [
        ("drop", (think("raw"),), None),
        ("summary", (think("raw"),), None),
        ("summary", (think("raw"), think("short", kind="summary")), "short"),
        ("text", (think("raw"), think("short", kind="summary")), "raw\nshort"),
        ("text", (think(" "),), None),
        ("text", (think("raw", marker=True), think("raw", is_hidden=True)), None),
    ],
)
def test_foreign_text(mode: Any, blocks: Any, field: str | None) -> None:
    """``reasoning.foreign`` opts in to readable text of others: nothing, summaries, or all of it."""
    talk = Talk(changed(endpoint="https://x.example", requested_model="m2")).turn("a", *blocks, say("x")).user("b")
    assert [field] == build(talk, None, settings(foreign=mode)).fields


def test_foreign_text_is_told_and_its_carriers_are_not() -> None:
    """What foreign text is kept is decided as summary or text; the opaque values stay away."""
    blocks = (think("raw", signature="s1"), think("short", kind="summary"), say("x"))
    talk = Talk(changed(requested_model="m2", served_model="m2")).turn("a", *blocks).user("b")
    built = build(talk, None, settings(foreign="text"))
    assert [(each.action, each.what) for each in built.decisions] == [
        ("text", "reasoning"),
        ("drop", "signature"),
        ("summary", "reasoning"),
    ]
    assert built.reasons[0] == ("minted by model m2, target is m1; reasoning.foreign=text keeps its readable text")
    assert b"s1" not in built.body


def test_a_rule_may_forbid_foreign_text() -> None:
    """Where foreign text trips a refusal classifier the opt-in does not hold, and the decision says why."""
    talk = Talk(changed(requested_model="m2", served_model="m2")).turn("a").user("b")
    built = build(talk, rule(forbid_foreign_text=True), settings(foreign="text"))
    assert built.fields == [None]
    assert built.reasons == ["minted by model m2, target is m1; the endpoint refuses foreign reasoning as text"]
    assert [None] == build(talk, rule(form="none", forbid_foreign_text=True), settings(foreign="text")).fields


@pytest.mark.parametrize("form", ["tags", "details", "none"])
def test_foreign_text_without_a_field_is_prose(form: Any) -> None:
    """Where the endpoint has no field for it, foreign text is told as plain prose without tags."""
    demand: Any = "never" if form == "none" else "should"
    talk = Talk(changed(requested_model="m2", served_model="m2")).turn("a").user("b")
    built = build(talk, rule(form=form, open_turn=demand, later=demand), settings(foreign="text"))
    assert built.messages[1]["content"] == "(Earlier reasoning, by m2: on a)\n\nre a"
    assert built.actions == ["text"]


@pytest.mark.parametrize(
    "wanted",
    [
        settings(foreign="text", strip_from_context="all"),
        settings(foreign="text", include_in_context=False),
        settings(foreign="text", enabled=False),
    ],
)
def test_foreign_prose_obeys_the_other_settings(wanted: Any) -> None:
    """Strip, an explicit no and the main switch hold for foreign prose too."""
    talk = Talk(changed(requested_model="", served_model="m2")).turn("a").user("b")
    assert build(talk, rule(form="none", later="never"), wanted).messages[1]["content"] == "re a"


def test_own_reasoning_stays_away_where_foreign_prose_goes() -> None:
    """An endpoint that takes no reasoning back gets none of its own either way."""
    talk = Talk().turn("a").user("b")
    built = build(talk, rule(form="none", later="never"), settings(foreign="text"))
    assert built.messages[1] == {"role": "assistant", "content": "re a"}
    assert built.reasons == ["the endpoint takes no reasoning back"]


def test_prose_names_another_model_where_none_is_known() -> None:
    """Prose of a response whose model is not known says so."""
    talk = Talk(changed(requested_model="", served_model="m2")).turn("a").user("b")
    built = build(talk, rule(form="none", later="never"), settings(foreign="text"))
    assert built.messages[1]["content"].startswith("(Earlier reasoning, by another model: on a)")


@pytest.mark.parametrize("later", ["may", "never", "must-after-tools"])
@pytest.mark.parametrize("made", [rule, native])
def test_foreign_text_is_told_as_prose_where_no_reasoning_is_wanted(made: Any, later: Any) -> None:
    """``reasoning.foreign=text`` alone is enough; what is the model's own stays away as before."""
    row = made(open_turn="may", later=later)
    talk = Talk(changed(endpoint="https://x.example")).turn("a").user("b").reply(think("mine"), say("x")).user("c")
    own = Talk().turn("a").user("b")
    wanted = settings(foreign="text")
    built = build(talk, row, wanted)
    assert "(Earlier reasoning, by m1: on a)" in str(built.messages[1]["content"])
    assert "reasoning_content" not in built.messages[1]
    assert {"text"} == set(built.actions)
    assert {"drop"} == set(build(own, row, wanted).actions)


@pytest.mark.parametrize(
    ("model", "to", "goes"),
    [
        ("m1", "m1", True),
        ("house/M1", "m1", True),
        ("m1", "house/m1", True),
        ("claude-opus-5-5", "m1", False),
        ("", "m1", True),
    ],
)
def test_where_the_endpoint_is_unknown_the_model_decides(model: str, to: str, goes: bool) -> None:
    """Thoughts of another model do not go as the target's own; nothing opaque goes in any case."""
    imported = Origin("claude-code", "", model, model)
    talk = Talk().turn("a", think("secret"), say("b"), origin=imported).user("c")
    built = build(talk, target(rule(), model=to))
    assert [("secret" if goes else None)] == built.fields
    assert not check(imported, target(model=to)).carriers
    if not goes:
        assert [("reasoning", f"minted by model {model}, target is {to}")] == built.dropped
        assert "text" in build(talk, target(rule(), model=to), settings(foreign="text")).actions
    assert check(imported, target(model=to), recipe=1).text
