"""What a Responses request must look like: parameters, items, ids, and the pairing of calls with outputs."""

from __future__ import annotations

import pytest

from tests.referee.responses.desk import ENCRYPTED, WEATHER, Body, Desk, output, said, user
from thinkback_referee import Call, Step

HI = user("hi")
CALL: Body = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"}
REASONING: Body = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]}
OPENAI = Desk("openai", "gpt-5")


@pytest.mark.parametrize(
    ("parameters", "message", "param", "code"),
    [
        (
            {"reasoning": {"effort": "xhigh"}},
            "Unsupported value: 'xhigh' is not supported with the 'gpt-5' model. "
            "Supported values are: 'minimal', 'low', 'medium', and 'high'.",
            "reasoning.effort",
            "unsupported_value",
        ),
        (
            {"temperature": 0.5},
            "Unsupported parameter: 'temperature' is not supported with this model.",
            "temperature",
            "unsupported_parameter",
        ),
        (
            {"reasoning": {"context": "all_turns"}},
            "Unsupported value: 'all_turns' is not supported with the 'gpt-5' model. "
            "Supported values are: 'auto' and 'current_turn'.",
            "reasoning.context",
            "unsupported_value",
        ),
        (
            {"reasoning": {"mode": "pro"}},
            "Unsupported parameter: 'reasoning.mode' is not supported with this model.",
            "reasoning.mode",
            "unsupported_parameter",
        ),
        (
            {"reasoning": {"budget_tokens": 5}},
            "Unknown parameter: 'reasoning.budget_tokens'.",
            "reasoning.budget_tokens",
            "unknown_parameter",
        ),
        ({"messages": []}, "Unknown parameter: 'messages'.", "messages", "unknown_parameter"),
        (
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            "Missing required parameter: 'tools[0].name'.",
            "tools[0].name",
            "missing_required_parameter",
        ),
    ],
)
def test_parameters_that_the_model_does_not_take(parameters: Body, message: str, param: str, code: str) -> None:
    """Each is refused with OpenAI's text, parameter and code."""
    verdict = OPENAI.verdict(HI, **parameters)
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    assert (400, {"error": error}) == (verdict.status, verdict.body)


def test_a_model_that_does_not_reason_takes_no_effort_but_a_temperature() -> None:
    """Recorded for gpt-5-chat-latest: the parameter itself is not supported."""
    client = Desk("openai", "gpt-5-chat-latest")
    refused = client.verdict(HI, reasoning={"effort": "low"})
    assert "Unsupported parameter: 'reasoning.effort' is not supported with this model." == refused.message
    assert client.verdict(HI, temperature=0.5).ok
    assert not client.view(HI).thinks


def test_effort_none_lifts_the_rule_about_sampling() -> None:
    """Models that can leave off reasoning take a temperature then."""
    client = Desk("openai", "gpt-5.5")
    assert not client.verdict(HI, temperature=0.5).ok
    assert client.verdict(HI, temperature=0.5, reasoning={"effort": "none"}).ok
    assert client.verdict(HI, temperature=None).ok


def test_an_update_within_the_input_changes_the_effort() -> None:
    """The last update counts, and takes nothing but an effort."""
    client = Desk("openai", "gpt-5.5")
    off: Body = {"type": "configuration_update", "reasoning": {"effort": "none"}}
    assert (True, False) == (client.view(HI).thinks, client.view(off, HI).thinks)
    wrong: Body = {"type": "configuration_update", "reasoning": {"summary": "auto"}}
    assert "Unknown parameter: 'input[0].reasoning.summary'." == client.verdict(wrong, HI).message


@pytest.mark.parametrize("model", ["gpt-5.1", "gpt-5.4"])
def test_some_models_do_not_reason_unless_asked(model: str) -> None:
    """Their default effort is none."""
    client = Desk("openai", model)
    assert (False, True) == (client.view(HI).thinks, client.view(HI, reasoning={"effort": "low"}).thinks)


def test_what_can_be_included_is_a_list() -> None:
    """An unknown include is refused, the known one is taken."""
    assert OPENAI.verdict(HI, **ENCRYPTED).ok
    assert OPENAI.verdict(HI, include=["reasoning"]).message.startswith("Invalid value: 'reasoning'.")


@pytest.mark.parametrize(
    ("reason", "items"),
    [
        ("bad input[0].type", [{"type": "thinking", "text": "x"}]),
        ("unknown input[0].thinkback", [{**HI, "thinkback": 1}]),
        ("bad input[0].role", [{"role": "tool", "content": "x"}]),
        ("missing input[0].content", [{"role": "user"}]),
        ("bad input[0].content[0]", [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]),
        ("bad input[0].content[0]", [said("", content=[{"type": "input_text", "text": "x"}])]),
        ("bad input[0].phase", [said("x", phase="thinking")]),
        ("missing input[0].summary", [{"type": "reasoning", "encrypted_content": "x"}]),
        ("raw reasoning at input[0]", [REASONING]),
        ("missing input[0].arguments", [{**CALL, "arguments": {}}]),
        ("missing input[0].call_id", [{"type": "function_call_output", "output": "x"}]),
        ("missing input[0].output", [{"type": "function_call_output", "call_id": "c1"}]),
        ("bad input[0].id", [{**CALL, "id": "call_1"}]),
        ("bad input[0].id", [{**CALL, "id": "fc_" + "x" * 62}]),
        ("call without an output: c1", [CALL]),
        ("output without a call at input[0]", [output("c1")]),
        ("duplicate at input[1]", [{**CALL, "id": "fc_1"}, {**CALL, "id": "fc_1"}]),
    ],
)
def test_items_that_are_refused(reason: str, items: list[Body]) -> None:
    """Each is refused with 400 and the place of the fault."""
    verdict = OPENAI.verdict(*items)
    assert (400, reason) == (verdict.status, verdict.reason)
    assert verdict.message


def test_the_texts_of_refused_items_are_the_providers() -> None:
    """Ids, raw reasoning, unanswered calls and stray outputs are refused in OpenAI's words."""
    texts = [
        OPENAI.verdict({**CALL, "id": "toolu_1"}).message,
        OPENAI.verdict(REASONING).message,
        OPENAI.verdict(CALL).message,
        OPENAI.verdict(output("c1")).message,
    ]
    assert [
        "Invalid 'input[0].id': 'toolu_1'. Expected an ID that begins with 'fc'.",
        "Invalid 'input[0].content': array too long. Expected an array with maximum length 0, but got an array with "
        "length 1 instead.",
        "No tool output found for function call c1.",
        "No tool call found for function call output with call_id c1.",
    ] == texts


@pytest.mark.parametrize("given", [None, 5, ["hi"]])
def test_an_input_that_is_none(given: object) -> None:
    """The input is a text or an array of objects."""
    assert 400 == OPENAI.verdict(input=given).status


def test_a_text_is_a_user_message() -> None:
    """The short form of the input is understood."""
    assert OPENAI.verdict(input="hi").ok
    assert "hi" == OPENAI.view(input="hi").asked


def test_azure_takes_no_status_in_what_the_model_said() -> None:
    """A client that sends its items as they came is refused at the first reasoning item or message."""
    client = Desk("azure", "gpt-5-mini")
    [message] = client.items(Step(text="42"), HI)
    verdict = client.verdict(HI, message, user("on"))
    assert (400, "Unknown parameter: 'input[1].status'.") == (verdict.status, verdict.message)
    [call] = client.items(Step(tool_calls=[Call("get_weather", "{}", "c1")]), HI)
    assert client.verdict(HI, call, output("c1")).ok


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"instructions": ""}, "Instructions are required"),
        ({"store": None}, "Store must be set to false"),
        ({"stream": False}, "Stream must be set to true"),
        ({"input": "hi"}, "Input must be a list"),
        ({"max_output_tokens": 100}, "Unsupported parameter: max_output_tokens"),
    ],
)
def test_the_backend_of_chatgpt_wants_its_own_form(change: Body, detail: str) -> None:
    """What it asks for is refused in its own words before the request is looked at."""
    form: Body = {"instructions": "Be brief.", "store": False, "stream": True}
    client = Desk("codex", "gpt-5.4", form)
    assert client.verdict(HI).ok
    verdict = client.verdict(HI, **change)
    assert (400, {"detail": detail}) == (verdict.status, verdict.body)


def test_deepseek_wants_its_calls_together() -> None:
    """Nothing may stand between two calls that have no output yet."""
    client = Desk("deepseek", "deepseek-v4-pro")
    second: Body = {**CALL, "call_id": "c2"}
    results = [output("c1"), output("c2")]
    assert client.verdict(HI, said("Let me see."), CALL, second, *results).ok
    assert client.verdict(HI, CALL, output("c1"), said("And"), second, output("c2")).ok
    refused = client.verdict(HI, CALL, said("And"), second, *results)
    assert (400, "split calls at input[3]") == (refused.status, refused.reason)


def test_xai_takes_no_penalties() -> None:
    """Its reasoning models refuse stop sequences and penalties, and take a temperature."""
    client = Desk("xai", "grok-4.3")
    assert "Unsupported parameter: 'stop' is not supported with this model." == client.verdict(HI, stop=["x"]).message
    assert client.verdict(HI, temperature=0.5).ok
    assert not Desk("xai", "grok-4.20-reasoning").verdict(HI, reasoning={"effort": "low"}).ok


@pytest.mark.parametrize("host", ["codex", "copilot", "deepseek", "openrouter"])
def test_hosts_without_state_continue_nothing(host: str) -> None:
    """Whatever the words, a previous response is refused."""
    model = {"deepseek": "deepseek-v4-pro", "openrouter": "openai/gpt-6-sol"}.get(host, "gpt-5.3-codex")
    form: Body = {"instructions": "Be brief.", "store": False, "stream": True} if host == "codex" else {}
    assert 400 == Desk(host, model, form).verdict(HI, previous_response_id="resp_1").status


def test_two_conversations_at_once_are_refused() -> None:
    """A previous response and a conversation exclude each other."""
    previous = OPENAI.answer(Step(text="42"), HI)["id"]
    assert "two conversations" == OPENAI.verdict(HI, previous_response_id=previous, conversation="conv_1").reason


def test_tools_are_offered_to_the_model_as_they_are_named_here() -> None:
    """Function tools are seen, server tools are not; a choice names one, or forbids all."""
    search: Body = {"type": "web_search"}
    view = OPENAI.view(HI, tools=[WEATHER, search], tool_choice={"type": "function", "name": "get_weather"})
    assert (["get_weather"], "get_weather") == ([tool.name for tool in view.tools], view.choice)
    assert "none" == OPENAI.view(HI, tool_choice="none").choice
    assert "" == OPENAI.view(HI, tool_choice="auto").choice


def test_an_unknown_model_is_refused() -> None:
    """A model of no row gets 404 with its name."""
    verdict = Desk("openai", "gpt-none").verdict(HI)
    assert (404, True) == (verdict.status, "gpt-none" in verdict.message)
