"""What may run, what is asked, what is denied."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.model.blocks import ToolCall
from thinkback.settings.permissions import Rule, read_rules
from thinkback.turn.permissions import Effect, Mode, Permissions, Verdict, always, decide, with_rule

MODES: tuple[Mode, ...] = get_args(Mode)
EFFECTS: tuple[Effect, ...] = get_args(Effect)


def calling(name: str, **arguments: object) -> ToolCall:
    """A call."""
    return ToolCall("c", name, json.dumps(arguments))


def verdict(rules: str, call: ToolCall, effect: Effect = "runs", mode: Mode = "auto") -> Verdict:
    """What is decided under ``rules``."""
    return decide(Permissions(mode, read_rules(rules) or ()), call, effect)


def action(rules: str, call: ToolCall, effect: Effect = "runs", mode: Mode = "auto") -> str:
    """The same in a word."""
    return verdict(rules, call, effect, mode).action


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [("auto", ["allow", "allow", "allow"]), ("ask", ["allow", "ask", "ask"]), ("read_only", ["allow", "deny", "deny"])],
)
def test_the_mode_goes_by_the_effect(mode: Mode, wanted: list[str]) -> None:
    """What only reads always runs; the rest runs, is asked about, or is denied."""
    assert wanted == [action("", calling("x"), effect, mode) for effect in EFFECTS]


def test_nobody_speaks_in_auto_without_rules() -> None:
    """What just runs is no decision."""
    assert Verdict("allow", "runs") == verdict("", calling("x"))


def test_reasons_name_who_decided() -> None:
    """The mode, a rule, or the words of the command."""
    assert "permissions.mode is ask, and write writes" == verdict("", calling("write"), "writes", "ask").reason
    assert "permissions.mode is read_only, and go runs" == verdict("", calling("go"), "runs", "read_only").reason
    assert "the rule go(a*)=deny" == verdict("go(a*)=deny", calling("go", command="ab")).reason
    assert "command" == verdict("", calling("shell", command="ls"), "runs", "ask").by
    assert "mode" == verdict("", calling("look"), "reads", "ask").by


@pytest.mark.parametrize("mode", ["ask", "read_only"])
def test_a_command_that_only_reads_runs_without_a_word(mode: Mode) -> None:
    """Of the shell's own command, not of any tool that has one."""
    assert "allow" == action("", calling("shell", command="git status"), "runs", mode)
    assert "allow" != action("", calling("shell", command="git push"), "runs", mode)
    assert "allow" != action("", calling("other", command="git status"), "runs", mode)
    assert "allow" != action("", calling("shell", path="git status"), "runs", mode)


def test_a_rule_speaks_before_the_mode() -> None:
    """It loosens, tightens and asks."""
    assert "allow" == action("write=allow", calling("write"), "writes", "ask")
    assert "ask" == action("look=ask", calling("look"), "reads", "ask")
    assert "ask" == action("shell=ask", calling("shell", command="ls"), "runs", "ask")
    assert "deny" == action("look=deny", calling("look"), "reads")


def test_read_only_is_only_tightened() -> None:
    """No rule lets anything write."""
    assert "deny" == action("write=allow", calling("write"), "writes", "read_only")
    assert "deny" == action("write=ask", calling("write"), "writes", "read_only")
    assert "ask" == action("look=ask", calling("look"), "reads", "read_only")
    assert "deny" == action("look=deny", calling("look"), "reads", "read_only")
    assert "rule" == verdict("shell=deny", calling("shell", command="ls"), "runs", "read_only").by


def test_the_later_rule_wins_and_a_denial_always() -> None:
    """So exceptions stand behind what they are from, and a denial may stand anywhere."""
    assert "allow" == action("mcp:*=ask,mcp:search=allow", calling("mcp:search"))
    assert "ask" == action("mcp:*=ask,mcp:search=allow", calling("mcp:other"))
    assert "ask" == action("mcp:search=allow,mcp:*=ask", calling("mcp:search"))
    assert "deny" == action("mcp:search=deny,mcp:*=allow", calling("mcp:search"))


def test_an_asterisk_allows_simple_commands_only() -> None:
    """What follows a semicolon is another command."""
    rules = "shell=ask,shell(git status*)=allow"
    assert "allow" == action(rules, calling("shell", command="git status -s"))
    assert "ask" == action(rules, calling("shell", command="git status; rm -rf ."))
    assert "ask" == action(rules, calling("shell", command="git status $(rm a)"))
    assert "allow" == action(r"shell=ask,shell(ls | wc)=allow", calling("shell", command="ls | wc"))


def test_a_rule_that_denies_reads_each_part_of_a_command() -> None:
    """However it is spaced, in whatever case."""
    for command in ("rm -rf a", "cd a && rm -rf b", "ls\nrm -rf a", "ls;  RM   -rf a", "ls|rm -rf a"):
        assert "deny" == action("shell(rm *)=deny", calling("shell", command=command))
    assert "allow" == action("shell(rm *)=deny", calling("shell", command="echo rm"))


def test_an_asterisk_allows_no_path_that_climbs() -> None:
    """``..`` may lead anywhere, however it is written."""
    rules = "write=ask,write(src/*)=allow"
    assert "allow" == action(rules, calling("write", path="src/a/b.py"), "writes")
    for path in ("src/../a", r"src\..\a", "a/src/b", "/src/a"):
        assert "ask" == action(rules, calling("write", path=path), "writes")


def test_a_rule_that_denies_reads_every_ending_of_a_path() -> None:
    """A path may be absolute, or go around."""
    rules = "write(secrets/*)=deny"
    for path in ("secrets/a", "./secrets/a", "/home/me/secrets/a", "x/../secrets/a", r"x\secrets\a", "../secrets//a"):
        assert "deny" == action(rules, calling("write", path=path), "writes")
    assert "allow" == action(rules, calling("write", path="secret/a"), "writes")


def test_other_calls_are_matched_by_their_arguments() -> None:
    """As they were written; also when they are no JSON, or no object."""
    assert "deny" == action('pay(*"amount": 7*)=deny', calling("pay", amount=7))
    assert "deny" == action("pay(*oops*)=deny", ToolCall("c", "pay", "{oops"))
    assert "deny" == action("pay([1])=deny", ToolCall("c", "pay", "[1]"))
    assert "deny" == action("pay()=deny", ToolCall("c", "pay", ""))
    assert "allow" == action("pay(*oops*)=deny", calling("pay", amount=7))
    assert "deny" == action("pay({*)=deny", calling("pay", command=7, path=8))
    assert "allow" == action("pay=ask,pay(*)=allow", calling("pay", amount=7))


def test_always_is_for_no_more_than_was_asked() -> None:
    """A command is that very command, a path that very path; a tool else."""
    command = calling("shell", command="make (all) *")
    assert Rule("shell", "allow", r"make \(all\) \*") == always(command, verdict("", command, "runs", "ask"))
    write = calling("write", path="a.txt")
    assert Rule("write", "allow", "a.txt") == always(write, verdict("", write, "writes", "ask"))
    assert Rule("write", "allow", "a.txt") == always(write, verdict("write=ask", write, "writes"))
    pay = calling("pay", amount=7)
    assert Rule("pay", "allow") == always(pay, verdict("", pay, mode="ask"))
    assert Rule("write", "allow", "a.txt") == always(write, verdict("write(*.txt)=ask", write, "writes"))


def test_always_is_for_this_very_call_of_a_tool_that_is_not_known() -> None:
    """What stands beside a command may be all that matters; of the shell it is the time limit."""
    call = calling("mcp__x__run", command="run", script="ls")
    rules = str(always(call, verdict("", call, mode="ask")))

    assert "allow" == action(rules, call, mode="ask")
    assert "ask" == action(rules, calling("mcp__x__run", command="run", script="rm -rf ."), mode="ask")
    assert "ask" == action(rules, calling("mcp__x__run", command="run"), mode="ask")
    asked = "mcp__x__do(a.txt)=ask"
    path = calling("mcp__x__do", path="a.txt", how="look")
    rules = f"{asked},{always(path, verdict(asked, path))}"
    assert "allow" == action(rules, path)
    assert "ask" == action(rules, calling("mcp__x__do", path="a.txt", how="delete"))
    shell = calling("shell", command="make", timeout=5)
    assert Rule("shell", "allow", "make") == always(shell, verdict("", shell, mode="ask"))
    write = calling("write", path="a", content="b")
    assert Rule("write", "allow", "a") == always(write, verdict("write(a)=ask", write, "writes"))


def test_a_rule_that_denies_reads_a_path_beside_a_command() -> None:
    """Whatever tools call what they do."""
    call = calling("mcp__edit", command="view", path="conf/secret.txt")

    assert "deny" == action("mcp__edit(secret*)=deny", call)
    assert "ask" == action("mcp__edit(view)=ask", call)
    assert "allow" == action("mcp__edit(conf*)=allow", call)
    assert "ask" == action("mcp__edit(conf*)=allow", call, mode="ask")


@pytest.mark.parametrize(
    "command",
    ["/bin/rm a", "X=1 rm a", "sudo rm a", "command rm a", "'r'm a", r"\rm a", 'env A=b "rm" a', "if x; then rm a; fi"],
)
def test_a_rule_that_denies_reads_what_a_command_is(command: str) -> None:
    """However its program is written, and what stands before it; an asking rule the same, an allowing one never."""
    call = calling("shell", command=command)
    assert "deny" == action("shell(rm *)=deny", call)
    assert "ask" == action("shell(rm *)=ask", call)
    assert "ask" == action("shell(rm *)=allow", call, mode="ask")


def test_a_rule_that_denies_knows_no_capitals() -> None:
    """Of a tool's name neither: whoever denies means it. One that allows is taken at its word."""
    assert "deny" == action("Shell=deny", calling("shell", command="ls"))
    assert "ask" == action("Write=allow", calling("write", path="a"), "writes", "ask")


@pytest.mark.parametrize("command", ["(rm a)", "echo $(rm a)", "echo `rm a`", "{ rm a; }", "ls\rrm a"])
def test_a_rule_that_denies_reads_what_stands_in_brackets(command: str) -> None:
    """Of the usual ways to write a command inside another."""
    assert "deny" == action("shell(rm *)=deny", calling("shell", command=command))


def test_a_long_command_is_matched_in_time() -> None:
    """However many asterisks a rule has: a model chooses the command."""
    command = "rm -r x " * 20_000

    assert "allow" == action("shell(*rm*-rf*/*x*y)=deny", calling("shell", command=command))
    assert "deny" == action("shell(*rm*-rf*/*x*y)=deny", calling("shell", command=f"{command} rm -rf /usr/x y"))


def test_an_added_rule_stands_behind_the_one_that_asked() -> None:
    """So what is said of something narrower still holds."""
    rules = read_rules("write=ask,write(secrets/*)=ask") or ()
    new = Rule("write", "allow")
    assert (rules[0], new, rules[1]) == with_rule(rules, new, rules[0])
    assert (new, *rules) == with_rule(rules, new, None)
    assert (new, *rules) == with_rule(rules, new, Rule("gone", "ask"))


COMMANDS = st.text("abc ;|&$\n*()\\./", max_size=12)


@given(COMMANDS, st.sampled_from(["", "shell=ask", "shell(*a*)=ask", "shell(b*)=ask,shell=ask"]))
def test_after_always_the_same_call_runs(command: str, rules: str) -> None:
    """Whatever the command is made of, and whatever asked; any other command is asked about as before."""
    call = calling("shell", command=command)
    before = verdict(rules, call, "runs", "ask")
    if before.action != "ask":
        return
    added = with_rule(read_rules(rules) or (), always(call, before), before.rule)
    after = decide(Permissions("ask", added), call, "runs")
    later = [rule for rule in added[added.index(always(call, before)) + 1 :] if rule.action == "ask"]
    assert "allow" == after.action or later
    other = calling("shell", command=f"{command}x")
    assert decide(Permissions("ask", added), other, "runs").action == verdict(rules, other, "runs", "ask").action
