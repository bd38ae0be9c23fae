"""From a session and what a caller wants to a turn that can be driven: checks before anything is stored, the ask, the
host that answers its questions, the driver.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from random import random
from typing import TYPE_CHECKING

from thinkback.drive.agenda import Watch
from thinkback.drive.approval import is_coroutine
from thinkback.drive.sync import SyncDriver
from thinkback.drive.tools import PythonTool
from thinkback.errors import ToolDefinitionError, Veto
from thinkback.log.compaction import is_empty
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Compaction, Message
from thinkback.session import apps, requests
from thinkback.session.agents.permitting import Permitting
from thinkback.session.fresh import new_id, outside
from thinkback.session.planning import within_budget
from thinkback.session.profiles import following
from thinkback.session.requests import Options
from thinkback.turn.ask import Ask
from thinkback.turn.controls import Resolver
from thinkback.turn.credentials import Authenticator
from thinkback.turn.machine import Turn
from thinkback.turn.permissions import Verdict
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.session.session import Session

# The responses of a turn, where neither call nor settings say how many.
MAX_STEPS = 25


def preflight(session: Session, options: Options, said: Message | None = None) -> Authenticator:
    """Everything that can be wrong before a request is, so that nothing is stored for it.

    What is returned is still to be prepared, which may use the network.
    """
    options = apps.formed(session, options)
    place, rulebook = session._place, session._store.rulebook
    target = place.target(rulebook)
    wanted = session._effective(options.settings)
    params = requests.native_params(target, options, wanted)
    effective = within_budget(session, wanted, target, params).settings
    Resolver(effective, target, params)
    apps.check(session, effective, target)
    requests.check_message(said, target)
    place.headers(rulebook, streams=options.stream)
    return place.authenticator(rulebook)


class Host:
    """The session's side of one turn: a ``drive.agenda.TurnHost`` that reads the settings as they are when asked."""

    def __init__(self, session: Session, options: Options, permitting: Permitting) -> None:
        self._session = session
        self._options = options
        self.permitting = permitting

    def build(self) -> Plan:
        """The next request, where the session's profiles lead to now."""
        return following.planned(self._session, self._options)

    def review(self, subject: Plan | Compaction) -> str:
        """``pre_send`` for a request, ``pre_compact`` for a checkpoint."""
        if isinstance(subject, Compaction):
            return refusal(self._session, subject)
        self._session._line.hooks.run("pre_send", subject)
        return ""

    def permit(self, call: ToolCall) -> Verdict:
        """By the permissions as they are now."""
        return self.permitting.permit(call)

    def next_place(self, reason: str) -> str:
        """The next target of the session's profile."""
        return following.fail_over(self._session, reason)


def ask_for(session: Session, message: Message | None, options: Options) -> tuple[Ask, Host]:
    """What the turn is asked to do, and its host, with the functions that it may run."""
    functions = runnable(session, options)
    options = apps.completed(session, options)
    permitting = Permitting(session, options, functions)
    ask = Ask(
        message=message,
        system=options.system,
        tools=requests.stamped(options.tools, session.target.endpoint.dialect),
        runnable=frozenset(permitting.functions),
        max_steps=options.max_steps or session._effective(options.settings).max_steps or MAX_STEPS,
        max_retries=options.max_retries,
        keep_text=_keeps_text(session, options),
        asks=options.approve is not None,
    )
    return ask, Host(session, options, permitting)


def runnable(session: Session, options: Options) -> dict[str, PythonTool]:
    """The functions of this call; without ``tools`` those given before, for the tools are still offered."""
    if options.tools is not None:
        return options.functions
    offered = {tool.name for tool in session._history.tools}
    return {name: tool for name, tool in session._functions.items() if name in offered}


def answer(session: Session, results: Mapping[str, str], options: Options) -> None:
    """Store ``results``; every other open call must have a function, else nothing is stored."""
    session._refresh()
    waiting = requests.open_calls(session._history.commits)
    drafts = requests.result_drafts(results, waiting)
    requests.check_answered(waiting, results, runnable(session, options))
    session._append(drafts)


def turn_of(session: Session, message: Message | None, options: Options) -> tuple[Turn, Host]:
    """The turn, and its host, with the functions that it may run."""
    following.begin(session, is_new=message is not None)
    ask, host = ask_for(session, message, options)
    if options.tools is not None:
        session._functions = options.functions
    session._call = options
    return Turn(session._history, ask, new_id, random), host


def driver_of(session: Session, message: Message | None, options: Options) -> SyncDriver:
    """The driver of a turn that begins now, once a turn that was abandoned is ended."""
    session._last_turn.settle()
    session._refresh()
    turn, host = turn_of(session, message, options)
    permitting = host.permitting
    for name, function in permitting.functions.items():
        if function.is_async:
            raise ToolDefinitionError(
                f"tool {name!r} is a coroutine function", next_actions=("use session.aio, or a plain function",)
            )
    if options.approve is not None and is_coroutine(options.approve):
        raise TypeError("approve is a coroutine function: use session.aio, or a plain function")
    place = session._place
    transport = place.transport or session._store.transport(place.proxy, place.verify)
    timeouts = options.timeouts or place.timeouts
    watch = watch_of(session, message, options)
    functions, approval = permitting.functions, permitting.approval
    return SyncDriver(turn, host, session._history, session._line, transport, functions, timeouts, approval, watch)


def watch_of(session: Session, message: Message | None, options: Options) -> Watch | None:
    """Who writes the usage log of a turn; nobody where there is none."""
    log = session._store.usage_log
    if log is None:
        return None
    from thinkback.session.observing import watch

    return watch(session, log, message, session._effective(options.settings))


def refusal(session: Session, found: Compaction) -> str:
    """Why the program's own hooks do not want this checkpoint; nothing where they do, or it only says why none is."""
    if is_empty(found):
        return ""
    try:
        session._line.hooks.run("pre_compact", found)
    except Veto as veto:
        return veto.message
    return ""


def asks_for_summaries(session: Session, options: Options) -> bool:
    """Whether a model is to write the summaries that nobody asks for."""
    return session._place.is_complete and session._effective(options.settings).compaction_strategy == "model"


# What stands in for reasoning that is not kept, by the step of the rule's ``missing`` list.
_INSTEAD = {"placeholder": "a placeholder will go", "flatten-exchange-to-text": "the exchange will go as text"}


def _keeps_text(session: Session, options: Options) -> bool:
    keep = session._store.commit_reasoning and options.reasoning
    target = session.target
    if not keep and not session._text_warned and target.rule.later in ("must", "must-after-tools"):
        session._text_warned = True
        instead = next((told for step, told in _INSTEAD.items() if step in target.rule.missing), "it will be missing")
        warnings.warn(
            f"readable reasoning is not kept, and {target.endpoint.id} wants it back in later turns: {instead} instead",
            stacklevel=outside(),
        )
    return keep
