"""Reasoning items that come back: with what they led to, stored or encrypted, unaltered, and their own."""

from __future__ import annotations

import pytest

from tests.referee.responses.desk import ENCRYPTED, STATELESS, WEATHER, Body, Desk, output, said, user, without
from thinkback_referee import Call, Step
from thinkback_referee.jsons import as_list, as_object

HI = user("hi")
THOUGHT = Step(reasoning="Because.", text="42")
CALLING = Step(reasoning="Look.", tool_calls=[Call("get_weather", {"city": "Oslo"}, "call_1")])
PAIRING = [("openai", "gpt-5"), ("azure", "gpt-5-mini"), ("codex", "gpt-5.3-codex")]
CARRYING = [*PAIRING, ("xai", "grok-4.3"), ("meta", "muse-spark-1.3"), ("openrouter", "openai/gpt-6-sol")]
RAW = [("deepseek", "deepseek-v4-pro"), ("lmstudio", "openai/gpt-oss-20b")]


def desk(host: str, model: str, **parameters: object) -> Desk:
    required: Body = {"instructions": "Be brief.", "stream": True} if host == "codex" else {}
    return Desk(host, model, {**STATELESS, **required, **parameters})


def clean(items: list[Body]) -> list[Body]:
    """The items without the field that Azure refuses."""
    return [without(item, "status") for item in items]


@pytest.mark.parametrize(("host", "model"), CARRYING)
def test_a_response_may_come_back_as_it_was(host: str, model: str) -> None:
    """All items of a response, in their order, are accepted by the host that minted them."""
    client = desk(host, model)
    thought = clean(client.items(THOUGHT, HI))
    calling = clean(client.items(CALLING, HI))
    assert client.verdict(HI, *thought, user("on")).ok
    assert client.verdict(HI, *calling, output("call_1")).ok


@pytest.mark.parametrize(("host", "model"), PAIRING)
def test_reasoning_needs_what_followed_it(host: str, model: str) -> None:
    """E1: reasoning with its id whose follower is gone, changed, or no longer next, is refused."""
    client = desk(host, model)
    reasoning, message = clean(client.items(THOUGHT, HI))
    expected = f"Item '{reasoning['id']}' of type 'reasoning' was provided without its required following item."
    for rest in ([], [user("on")], [said("42"), user("on")], [user("on"), message]):
        verdict = client.verdict(HI, reasoning, *rest)
        assert (400, expected) == (verdict.status, verdict.message)
    assert client.verdict(HI, without(reasoning, "id"), said("42"), user("on")).ok


def test_reasoning_that_led_to_nothing_must_not_come_back() -> None:
    """A response cut while it reasoned cannot be continued."""
    client = desk("openai", "gpt-5")
    [reasoning] = client.items(Step(reasoning="Long ", finish="length"), HI)
    assert "no following item at input[1]" == client.verdict(HI, reasoning, user("on")).reason


def test_a_call_may_follow_its_reasoning_by_its_call_id_alone() -> None:
    """Recorded: a call without an id, known by its call id, is the required follower."""
    client = desk("openai", "gpt-5")
    reasoning, call = client.items(CALLING, HI)
    assert client.verdict(HI, reasoning, without(call, "id"), output("call_1")).ok


@pytest.mark.parametrize(("host", "model"), PAIRING)
def test_what_reasoning_led_to_needs_the_reasoning(host: str, model: str) -> None:
    """E2: a call or message with its id is refused without its reasoning; without the id it is taken."""
    client = desk(host, model)
    for step, kind, rest in ((CALLING, "function_call", output("call_1")), (THOUGHT, "message", user("on"))):
        reasoning, follower = clean(client.items(step, HI))
        verdict = client.verdict(HI, follower, rest)
        expected = (
            f"Item '{follower['id']}' of type '{kind}' was provided without its required 'reasoning' item: "
            f"'{reasoning['id']}'."
        )
        assert (400, expected) == (verdict.status, verdict.message)
        assert client.verdict(HI, without(follower, "id"), rest).ok


def test_parallel_calls_need_their_common_reasoning() -> None:
    """The reasoning stands before the first of its calls, and every call is tied to it."""
    client = desk("openai", "gpt-5")
    calls = [Call("get_weather", "{}", name) for name in ("a", "b")]
    reasoning, first, second = client.items(Step(reasoning="Both.", tool_calls=calls), HI)
    results = [output("a"), output("b")]
    assert client.verdict(HI, reasoning, first, second, *results).ok
    assert "no reasoning before input[1]" == client.verdict(HI, first, second, *results).reason
    assert client.verdict(HI, reasoning, without(first, "id"), second, *results).ok


def test_each_reasoning_of_a_response_is_tied_to_what_it_led_to() -> None:
    """Where a response reasons several times, its units come back one by one, each whole."""
    client = desk("openai", "gpt-5")
    units = [Step(reasoning=f"Thought {name}.", tool_calls=[Call("get_weather", "{}", name)]) for name in "ab"]
    step = Step(reasoning="At last.", text="42", earlier=units)
    first, call_a, second, call_b, third, message = client.items(step, HI)
    whole = [HI, first, call_a, second, call_b, third, message, output("a"), output("b"), user("on")]
    assert client.verdict(*whole).ok
    assert ("Thought a.", "Thought b.", "At last.") == client.view(*whole[:-1]).notes
    verdict = client.verdict(HI, first, call_a, call_b, third, message, output("a"), output("b"), user("on"))
    assert "no reasoning before input[3]" == verdict.reason
    verdict = client.verdict(HI, first, second, call_b, third, message, output("b"), user("on"))
    assert "no following item at input[1]" == verdict.reason


@pytest.mark.parametrize(("host", "model"), CARRYING)
def test_altered_encrypted_content_is_refused(host: str, model: str) -> None:
    """E4: one character other than minted, and the content cannot be decrypted."""
    client = desk(host, model)
    reasoning, *rest = clean(client.items(THOUGHT, HI))
    carrier = str(reasoning["encrypted_content"])
    altered = {**reasoning, "encrypted_content": carrier[:-5] + ("A" if carrier[-5] != "A" else "B") + carrier[-4:]}
    verdict = client.verdict(HI, altered, *rest, user("on"))
    assert (400, "changed at input[1]") == (verdict.status, verdict.reason)


def test_the_text_of_a_refused_content_names_the_item_or_the_content() -> None:
    """E4 in its two wordings, with its code; xAI has its own."""
    client = desk("openai", "gpt-5")
    reasoning, message = client.items(THOUGHT, HI)
    named = client.verdict(HI, {**reasoning, "encrypted_content": "gAAAAABxyzRg=="}, message)
    bare = client.verdict(HI, without({**reasoning, "encrypted_content": "gAAAAABxyzRg=="}, "id"), message)
    text = f"The encrypted content for item {reasoning['id']} could not be verified. "
    assert f"{text}Reason: Encrypted content could not be decrypted or parsed." == named.message
    assert text.replace(f"for item {reasoning['id']}", "gAAA...Rg==") == bare.message.partition("Reason: ")[0]
    error = {"type": "invalid_request_error", "param": None, "code": "invalid_encrypted_content"}
    assert {"error": {"message": named.message, **error}} == named.body
    grok = desk("xai", "grok-4.3").verdict(HI, {"type": "reasoning", "summary": [], "encrypted_content": "x"})
    assert {
        "code": "invalid-argument",
        "error": "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified "
        "encrypted_content from a previous response.",
    } == grok.body


@pytest.mark.parametrize("elsewhere", [{"key": "another"}, {"model": "gpt-5-mini"}, {"host": "azure"}])
def test_content_of_another_account_model_or_host_is_refused(elsewhere: dict[str, str]) -> None:
    """E4: encrypted content is read only where it was minted."""
    client = desk("openai", "gpt-5")
    items = [without(item, "status") for item in client.items(THOUGHT, HI)]
    verdict = client.other(**elsewhere).verdict(HI, *items, user("on"))
    assert (400, "foreign at input[1]") == (verdict.status, verdict.reason)


def test_content_under_the_id_of_another_item_is_refused() -> None:
    """Id and encrypted content belong together."""
    client = desk("openai", "gpt-5")
    (first, message), (second, _) = client.items(THOUGHT, HI), client.items(THOUGHT, user("ho"))
    verdict = client.verdict(HI, {**first, "encrypted_content": second["encrypted_content"]}, message, user("on"))
    assert "content of another item at input[1]" == verdict.reason


@pytest.mark.parametrize(
    ("elsewhere", "reason"),
    [({"key": "another"}, "organization_mismatch"), ({"model": "gpt-5.6-luna"}, "model_mismatch")],
)
def test_late_models_leave_foreign_reasoning_out_and_report_it(elsewhere: dict[str, str], reason: str) -> None:
    """The request is accepted, the model does not read it, and input_transformations says why."""
    client = desk("openai", "gpt-5.6-sol")
    items = [without(item, "id") for item in client.items(Step(reasoning="Secret.", text="42"), HI)]
    other = client.other(**elsewhere)
    assert other.verdict(HI, *items, user("on")).ok
    assert () == other.view(HI, *items, user("on")).notes
    answer = other.answer(THOUGHT, HI, *items, user("on"))
    assert [{"id": "", "type": "reasoning", "action": "removed", "reason": reason}] == answer["input_transformations"]
    assert ("Secret.",) == client.view(HI, *items, user("on")).notes
    assert "input_transformations" not in client.answer(THOUGHT, HI, *items, user("on"))


def test_late_models_report_reasoning_of_another_end_user_and_of_finished_turns() -> None:
    """Reasoning minted for one end user is left out for another; so is that of earlier turns where asked."""
    client = desk("openai", "gpt-5.6-sol", safety_identifier="ann")
    reasoning, message = client.items(THOUGHT, HI)
    history = [HI, reasoning, message, user("on")]
    for parameters, reason in (
        ({"safety_identifier": "bob"}, "end_user_mismatch"),
        ({"reasoning": {"context": "current_turn"}}, "turn_boundary"),
    ):
        answer = client.answer(THOUGHT, *history, **parameters)
        entry = {"id": reasoning["id"], "type": "reasoning", "action": "removed", "reason": reason}
        assert [entry] == answer["input_transformations"]


@pytest.mark.parametrize("change", ["instructions", "tools", "message", "nothing"])
def test_the_latest_models_bind_reasoning_to_what_stood_before_it(change: str) -> None:
    """With other instructions, tools or older messages it is left out and reported; earlier models read it."""
    changes: dict[str, Body] = {"instructions": {"instructions": "Be kind."}, "tools": {"tools": [WEATHER]}}
    parameters = changes.get(change, {})
    opening = user("hello") if change == "message" else HI
    for model, bound in (("gpt-6-sol", change != "nothing"), ("gpt-5.6-sol", False)):
        client = desk("openai", model)
        history = [opening, *client.items(Step(reasoning="A secret.", text="42"), HI), user("on")]
        answer = client.answer(THOUGHT, *history, **parameters)
        reported = [as_object(entry)["reason"] for entry in as_list(answer.get("input_transformations"))]
        assert (["prefix_mismatch"] if bound else []) == reported
        assert (() if bound else ("A secret.",)) == client.view(*history, **parameters).notes


def test_what_is_written_differently_is_the_same_prefix() -> None:
    """Ids, the form of a text and the spaces of arguments do not matter to what follows."""
    client = desk("openai", "gpt-6-sol")
    calling = client.items(CALLING, HI)
    thought = client.items(THOUGHT, HI, *calling, output("call_1"))
    parts: Body = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    spaced = {**without(calling[1], "id"), "arguments": '{ "city" : "Oslo" }'}
    history = [parts, calling[0], spaced, output("call_1"), *thought, user("on")]
    assert ("Look.", "Because.") == client.view(*history).notes
    broken = {**spaced, "arguments": "{"}
    assert ("Look.",) == client.view(parts, calling[0], broken, *history[3:]).notes


def test_reasoning_without_content_is_found_where_it_is_stored() -> None:
    """With store on, an id is enough; without, or elsewhere, it is E3."""
    client = Desk("openai", "gpt-5")
    reasoning, message = client.items(THOUGHT, HI)
    history = [HI, reasoning, message, user("on")]
    assert "encrypted_content" not in reasoning
    assert client.verdict(*history).ok
    refused = client.verdict(*history, store=False)
    text = (
        f"Item with id '{reasoning['id']}' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input."
    )
    assert (404, text) == (refused.status, refused.message)
    stranger = client.other(key="another").verdict(*history)
    assert (404, f"Item with id '{reasoning['id']}' not found.") == (stranger.status, stranger.message)


@pytest.mark.parametrize(
    ("host", "model", "text"),
    [
        ("openai", "gpt-5", "could not be verified"),
        ("meta", "muse-spark-1.3", "Referenced reasoning item was not found or was deleted"),
        ("xai", "grok-4.3", "needs an id or encrypted_content"),
    ],
)
def test_a_reasoning_item_needs_an_id_or_content(host: str, model: str, text: str) -> None:
    """A summary alone stands for nothing; OpenAI's answer is the same as to content that it cannot read."""
    verdict = Desk(host, model).verdict(HI, {"type": "reasoning", "summary": []})
    assert (400, True, True) == (verdict.status, "input[1]" in verdict.reason, text in verdict.message)


def test_meta_does_not_know_items_of_others_and_content_of_others() -> None:
    """Both in the words of the reports; what it minted itself comes back with its content, or stored by its id."""
    client = Desk("meta", "muse-spark-1.3", dict(ENCRYPTED))
    reasoning, message = client.items(THOUGHT, HI)
    bare = without(reasoning, "encrypted_content")
    assert client.verdict(HI, reasoning, message, user("on")).ok
    assert client.verdict(HI, bare, message, user("on")).ok
    stranger = client.other(key="another").verdict(HI, reasoning, message, user("on"))
    assert (400, "reasoning `encrypted_content` was not issued to this caller") == (stranger.status, stranger.message)
    gone = client.verdict(HI, bare, message, user("on"), store=False)
    assert (400, "Referenced reasoning item was not found or was deleted") == (gone.status, gone.message)


def test_references_stand_for_stored_items() -> None:
    """With store on, references replace whole items; without, they are E3."""
    client = Desk("openai", "gpt-5")
    references: list[Body] = [{"type": "item_reference", "id": item["id"]} for item in client.items(CALLING, HI)]
    history = [HI, *references, output("call_1")]
    assert client.verdict(*history).ok
    assert ("Look.",) == client.view(*history).notes
    assert (("get_weather", "rain"),) == client.view(*history).results
    assert 404 == desk("openai", "gpt-5").verdict(HI, {"type": "item_reference", "id": "rs_0"}).status


def test_a_previous_response_stands_for_the_conversation() -> None:
    """The next request sends only what is new; reasoning of the stored part is read."""
    client = Desk("openai", "gpt-5")
    previous = client.answer(CALLING, HI)["id"]
    assert client.verdict(output("call_1"), previous_response_id=previous).ok
    view = client.view(output("call_1"), previous_response_id=previous)
    assert ("hi", ("Look.",), (("get_weather", "rain"),)) == (view.asked, view.notes, view.results)


def test_sending_stored_items_again_is_a_duplicate() -> None:
    """What the previous response stands for must not come in the input too."""
    client = Desk("openai", "gpt-5")
    answer = client.answer(CALLING, HI)
    items = client.items(CALLING, HI)
    verdict = client.verdict(*items, output("call_1"), previous_response_id=answer["id"])
    text = f"Duplicate item found with id {items[0]['id']}. Remove duplicate items from your input and try again."
    assert (400, text) == (verdict.status, verdict.message)


@pytest.mark.parametrize("previous", ["resp_unknown", ""])
def test_an_unknown_previous_response_is_refused(previous: str) -> None:
    """The text, code and parameter are OpenAI's."""
    verdict = Desk("openai", "gpt-5").verdict(HI, previous_response_id=previous)
    error = {
        "message": f"Previous response with id '{previous}' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }
    assert (400, {"error": error}) == (verdict.status, verdict.body)


def test_a_previous_response_of_another_account_or_without_store_is_unknown() -> None:
    """Only the account that stored a response continues it."""
    client = Desk("openai", "gpt-5")
    stored, unstored = client.answer(CALLING, HI)["id"], client.answer(CALLING, HI, store=False)["id"]
    assert "unknown response" == client.other(key="b").verdict(HI, previous_response_id=stored).reason
    assert "unknown response" == client.verdict(HI, previous_response_id=unstored).reason


@pytest.mark.parametrize(("host", "model"), CARRYING)
def test_the_same_item_twice_is_refused(host: str, model: str) -> None:
    """One reasoning item goes once into a request, with or without its id."""
    client = desk(host, model)
    reasoning, message = clean(client.items(THOUGHT, HI))
    for twice in (reasoning, without(reasoning, "id")):
        verdict = client.verdict(HI, reasoning, twice, message, user("on"))
        assert (400, "duplicate at input[2]") == (verdict.status, verdict.reason)


def test_the_ciphertext_of_both_ends_of_a_stream_is_valid_and_that_of_its_start_is_not() -> None:
    """Encrypted content differs between the event that ends the item and the whole response; both can be read."""
    client = desk("openai", "gpt-5")
    events = client.events(THOUGHT, HI)
    items: dict[object, Body] = {event["type"]: event for event in events if event.get("output_index") == 0}
    added = items["response.output_item.added"]["item"]
    done = items["response.output_item.done"]["item"]
    response = events[-1]["response"]
    assert isinstance(response, dict)
    assert isinstance(added, dict)
    assert isinstance(done, dict)
    final, message = response["output"]
    assert 3 == len({str(item["encrypted_content"]) for item in (added, done, final)})
    statuses = [client.verdict(HI, item, message, user("on")).status for item in (added, done, final)]
    assert [400, 200, 200] == statuses


def test_copilot_refuses_reasoning_items() -> None:
    """Its own ones too, whatever they carry; without them the conversation goes on."""
    client = Desk("copilot", "gpt-5.3-codex", dict(ENCRYPTED))
    reasoning, call = client.items(CALLING, HI)
    for item in (reasoning, without(reasoning, "encrypted_content")):
        verdict = client.verdict(HI, item, call, output("call_1"))
        expected = 'input[1].type "reasoning" is not a valid input item type'
        assert (400, expected) == (verdict.status, verdict.message)
    assert client.verdict(HI, call, output("call_1")).ok


def test_an_id_of_another_host_is_not_found() -> None:
    """Ids do not travel: a message of OpenAI has none at Azure."""
    message = without(desk("openai", "gpt-5").items(Step(text="42"), HI)[0], "status")
    client = desk("openai", "gpt-5")
    minted = without(client.items(Step(text="42"), HI)[0], "status")
    assert "not found at input[1]" == client.other(host="azure").verdict(HI, minted, user("on")).reason
    assert desk("azure", "gpt-5").verdict(HI, message, user("on")).ok


@pytest.mark.parametrize(("host", "model"), RAW)
def test_raw_reasoning_comes_back_unaltered_or_not_at_all(host: str, model: str) -> None:
    """Where reasoning is readable its text must be what was minted; leaving it out is allowed."""
    client = Desk(host, model)
    reasoning, call = client.items(CALLING, HI)
    assert ("Look.",) == client.view(HI, reasoning, call, output("call_1")).notes
    assert client.verdict(HI, call, output("call_1")).ok
    altered = {**reasoning, "content": [{"type": "reasoning_text", "text": "Look!"}]}
    assert "changed at input[1]" == client.verdict(HI, altered, call, output("call_1")).reason
    other = client.other(*(("lmstudio", "openai/gpt-oss-20b") if host == "deepseek" else ("deepseek", RAW[0][1])))
    assert "foreign at input[1]" == other.verdict(HI, without(reasoning, "id"), call, output("call_1")).reason
    assert client.verdict(HI, without(altered, "id"), call, output("call_1")).ok


def test_a_router_wraps_the_refusals_of_the_models_own_host() -> None:
    """OpenRouter passes the upstream text on inside its own error."""
    client = desk("openrouter", "openai/gpt-6-sol")
    reasoning, message = client.items(THOUGHT, HI)
    verdict = client.verdict(HI, {**reasoning, "encrypted_content": "x"}, message, user("on"))
    assert "Provider returned error" == verdict.message
    assert "could not be verified" in str(verdict.body)


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.6-sol"])
def test_a_compaction_is_minted_where_asked_for_and_judged_when_it_comes_back(model: str) -> None:
    """Beyond the threshold, before what the model says; that of another account is refused by every model."""
    client = Desk("openai", model, {**ENCRYPTED, "store": False})
    wanted: Body = {"context_management": [{"type": "compaction", "compact_threshold": 1}]}
    compaction, *rest = client.items(THOUGHT, HI, **wanted)
    events = [as_object(event["item"])["type"] for event in client.events(THOUGHT, HI, **wanted) if "item" in event]
    assert ("compaction", "cmp_") == (compaction["type"], str(compaction["id"])[:4])
    assert ["compaction", "compaction", "reasoning"] == events[:3]
    assert "compaction" not in [item["type"] for item in client.items(THOUGHT, HI)]
    assert client.verdict(compaction, *rest, user("on")).ok
    named = f"The encrypted content for item {compaction['id']} could not be verified. "
    altered = client.verdict({**compaction, "encrypted_content": "gAAAAA"}, *rest, user("on"))
    foreign = client.other(key="another").verdict(compaction, user("on"))
    assert ["changed at input[0]", "foreign at input[0]"] == [altered.reason, foreign.reason]
    assert [True, True] == [verdict.message.startswith(named) for verdict in (altered, foreign)]


def test_rejecting_names_the_last_carrier() -> None:
    """The scripted refusal of genuine content is E4 for the last item that carries some."""
    client = desk("openai", "gpt-5")
    items = client.items(THOUGHT, HI)
    asked = client.asked(HI, *items, user("on"))
    assert str(items[0]["id"]) in client.persona.reject(asked).message
    assert (
        "could not be verified"
        in client.persona.reject(
            client.asked(
                HI,
            )
        ).message
    )


def test_reset_forgets_what_was_minted() -> None:
    """Afterwards nothing that came before can be read or continued."""
    client = Desk("openai", "gpt-5", dict(ENCRYPTED))
    answer = client.answer(THOUGHT, HI)
    items = client.items(THOUGHT, HI)
    client.persona.reset()
    assert not client.verdict(HI, *items, user("on")).ok
    assert not client.verdict(HI, previous_response_id=answer["id"]).ok
