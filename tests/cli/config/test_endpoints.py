"""``endpoints``: what is known, whether a key is set, which rule row is in force."""

from __future__ import annotations

import msgspec

from tests.cli.command import KEY, Command
from tests.cli.conftest import Inside
from thinkback.cli.config.endpoints import is_given, rule_lines
from thinkback.rules import load_rulebook


def test_every_endpoint_is_listed_with_its_key_variables(command: Command) -> None:
    """The list has id, name, address and key variables, and whether one is set; never a key."""
    shown, listed = command("endpoints", "--all"), command("endpoints", "--json").json
    by_id = {row["id"]: row for row in listed}

    assert sorted(row.id for row in load_rulebook().endpoints()) == list(by_id)
    heads = [line.split()[0] for line in shown.out.splitlines() if not line.startswith(" ")]
    assert (list(by_id), "deepseek") == (sorted(heads), heads[0])
    assert (True, False) == (by_id["deepseek"]["key_set"], by_id["kimi"]["key_set"])
    assert ["DEEPSEEK_API_KEY"] == by_id["deepseek"]["key_variables"]
    assert "key: DEEPSEEK_API_KEY is set\n" in shown.out
    assert KEY not in shown.out


def test_those_with_a_key_are_shown_and_the_others_named(inside: Inside) -> None:
    """Each id stands there once, and the last line says how to see more; a word lists those that it is a part of."""
    shown = inside("endpoints", DEEPSEEK_API_KEY=KEY).out.splitlines()
    told = " ".join(shown).replace(",", " ").split()

    assert shown[0].startswith("deepseek ")
    assert "DEEPSEEK_API_KEY is set" in shown[0]
    assert [] == [row.id for row in load_rulebook().endpoints() if row.id not in told]
    assert "`thinkback endpoints --all` every one" in " ".join(shown[-2:])
    assert len(shown) < 30
    found = inside("endpoints", "OpenCode").out.splitlines()
    of_opencode = sorted(row.id for row in load_rulebook().endpoints() if row.id.startswith("opencode-"))
    assert of_opencode == [line.split()[0] for line in found if not line.startswith(" ")]
    assert 2 == inside("endpoints", "OpenCode", "--json").code


def test_a_stored_key_counts_as_one(inside: Inside) -> None:
    """Said with its place; a key file that cannot be used is told of, and hides no key of the environment."""
    assert 0 == inside("keys", "set", "kimi", stdin=b"sk-stored").code
    (file,) = inside.place.rglob("keys.toml")
    (line,) = [line for line in inside("endpoints").out.splitlines() if line.startswith("kimi ")]
    assert line.endswith("stored in the key file")
    assert inside("endpoints", "kimi", "--json").json["key_set"]
    file.chmod(0o644)
    shown = inside("endpoints", DEEPSEEK_API_KEY=KEY)
    assert shown.out.startswith("deepseek ")
    assert "others may read it" in shown.err
    assert not [line for line in shown.out.splitlines() if line.startswith("kimi ")]


def test_the_rule_row_of_a_model_is_shown_with_its_source(command: Command) -> None:
    """With an ID and a model the row in force is shown, with where it is known from."""
    rule, _ = load_rulebook().rule_for("deepseek", "deepseek-v4-pro", "2026-11-01")

    shown, told = (command("endpoints", "deepseek", "--model", "deepseek-v4-pro", *more) for more in ((), ("--json",)))

    assert f"rule {rule.id} for deepseek-v4-pro" in shown.out
    assert told.json["docs"].startswith("https://api-docs.deepseek.com/")
    assert f"documentation: {told.json['docs']}\n" in shown.out
    assert " ".join(rule.source.split()) in " ".join(shown.out.split())
    assert (rule.id, rule.source, False) == (told.json["rule"]["id"], told.json["rule"]["source"], told.json["guessed"])


def test_a_source_that_nobody_can_open_is_marked(inside: Inside) -> None:
    """A row says so where neither its endpoint nor its source names a page."""
    notes = "source recorded, accepted requests carry reasoning_content inside a tool loop"

    assert f"{notes} (no public page known)" in " ".join(inside("endpoints", "avian").out.split())
    assert "no public page" not in " ".join(inside("endpoints", "groq").out.split())


def test_the_size_of_a_context_is_known(inside: Inside) -> None:
    """Of models whose providers tell it, also of small ones that are named alike."""
    sizes = {"gpt-5.4": 1_050_000, "gpt-5.4-2026-03-05": 1_050_000, "gpt-5.4-mini": 400_000, "gpt-5.4-nano": 400_000}
    for model, size in sizes.items():
        assert f"context {size}," in inside("endpoints", "openai", "--model", model).out


def test_a_row_of_any_endpoint_is_shown_without_json(inside: Inside) -> None:
    """Controls, what is refused and whose reasoning is read are sentences of parameters, a line each."""
    shown = inside("endpoints", "deepseek", "--model", "deepseek-v4-pro").out
    assert '\n  placeholder         " "\n' in shown
    for line in (
        "effort none: thinking.type = disabled",
        "on: thinking.type = enabled",
        "path: tool_choice; reason: thinking mode does not support it; values:",
        "reads: deepseek-*",
    ):
        assert line in " ".join(shown.split())
    for rule in load_rulebook().rules():
        for name, value in msgspec.structs.asdict(rule).items():
            told = rule_lines(value) if is_given(rule, name) else ()
            assert [] == [line for line in told if not line or ("{" in line and name != "refusals")]


def test_a_guessed_row_is_marked(command: Command) -> None:
    """A row that was not written for the model is marked as guessed."""
    assert "(guessed" in command("endpoints", "kimi", "--model", "something-new").out


def test_an_unknown_endpoint_is_not_found(command: Command) -> None:
    """An unknown ID ends with exit code 2 and names the command that lists them; a model alone is wrong use."""
    done = command("endpoints", "nowhere")

    assert 2 == done.code
    assert "- `thinkback endpoints` lists them" in done.err
    assert 2 == command("endpoints", "--model", "x").code


def test_what_is_signed_in_to_without_a_key_is_said(command: Command) -> None:
    """A key is not needed there; the scheme is in the list for programs."""
    by_id = {row["id"]: row for row in command("endpoints", "--json").json}

    assert ("sigv4", "google", "azure") == tuple(by_id[id]["auth"] for id in ("bedrock", "vertex", "azure-openai"))
    assert (False, True) == (by_id["bedrock"]["key_needed"], by_id["deepseek"]["key_needed"])
    assert "key: AWS_BEARER_TOKEN_BEDROCK (not set: signs in to AWS)" in command("endpoints", "bedrock").out


def test_a_narrow_terminal_breaks_no_words(inside: Inside) -> None:
    """What a row says stands under its name, so that words have room."""
    shown = inside("endpoints", "deepseek", COLUMNS="40").out

    assert "  missing\n    placeholder,\n    thinking-off-for-this-turn\n" in shown
    assert "reasoning_effort" in shown
