"""A turn of a conversation: checks before anything is stored, what it is asked, its host and its driver."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from random import random
from typing import TYPE_CHECKING

import msgspec

from thinkback.drive.agenda import Watch
from thinkback.drive.approval import is_coroutine
from thinkback.drive.sync import SyncDriver
from thinkback.drive.tools import PythonTool
from thinkback.errors import (
    ContextRefused,
    CredentialError,
    ProviderError,
    ReplayRefused,
    SettingError,
    ThinkbackError,
    ToolDefinitionError,
    UnknownModelError,
    UnsupportedContent,
    Veto,
)
from thinkback.log.compaction import is_empty
from thinkback.model.blocks import ToolCall
from thinkback.model.commits import Compaction, Message
from thinkback.session import apps, requests
from thinkback.session.agents.permitting import Permitting
from thinkback.session.ids import new_id, outside
from thinkback.session.planning import plan_of, within_budget
from thinkback.session.requests import Options, Prompt
from thinkback.turn.ask import Ask
from thinkback.turn.controls import Resolver
from thinkback.turn.credentials import Authenticator
from thinkback.turn.failures import CHECK_KEY
from thinkback.turn.machine import Turn
from thinkback.turn.permissions import Verdict
from thinkback.turn.plan import Plan

if TYPE_CHECKING:
    from thinkback.rules import Rulebook
    from thinkback.session.configuration import Configuration, Sources
    from thinkback.session.conversation import Conversation

# The responses of a turn, where neither call nor settings say how many.
MAX_STEPS = 25


def message(conversation: Conversation, prompt: Prompt) -> Message:
    """A prompt as a message; its content parts are read for the place of the next request."""
    if not requests.has_parts(prompt):
        return requests.message(prompt)
    return requests.message(prompt, conversation.configure().target.endpoint.dialect)


def preflight(
    conversation: Conversation, configuration: Configuration, options: Options, said: Message | None = None
) -> Authenticator:
    """Everything that can be wrong before a request is, so that nothing is stored for it.

    What is returned is still to be prepared, which may use the network.
    """
    app = configuration.app
    target = configuration.target
    wanted = configuration.settings(options.settings)
    params = requests.native_params(target, apps.formed(app, options), wanted)
    effective = within_budget(conversation, wanted, target, params).settings
    Resolver(effective, target, params)
    apps.check(app, effective, target)
    requests.check_message(said, target)
    configuration.headers(streams=options.stream)
    return configuration.authenticator()


class Host:
    """The conversation's side of one turn: a ``drive.agenda.TurnHost``. ``prepare`` looks at the files, the rest goes
    by what they said then. ``is_in_loop``: it runs in an event loop, where no file is to be opened."""

    def __init__(self, conversation: Conversation, options: Options, permitting: Permitting) -> None:
        self._conversation = conversation
        self._options = options
        self._sources: Sources | None = None
        self.permitting = permitting
        self.is_in_loop = False

    def prepare(self) -> None:
        """Read what the next answer goes by, and take out of the history what was erased; in any thread."""
        conversation = self._conversation
        conversation.drop_erased()
        self._sources = conversation.all_sources() if self.is_in_loop else conversation.sources()
        self._configuration().ask_limit()

    def build(self) -> Plan:
        """The next request; where a target that took over cannot be asked at all, that of the next one."""
        conversation, configuration = self._conversation, self._configuration()
        rotating, rotation = configuration.rotating, conversation.followed.rotation
        if rotating is not None and rotation.serving not in rotating.targets:  # the profile came in mid-turn
            configuration = begin(conversation, configuration, self._sources, is_new=False)
        while True:
            try:
                plan = plan_of(conversation, configuration, self._options, with_key=True)
            except (ContextRefused, CredentialError, ReplayRefused, SettingError, UnsupportedContent) as error:
                if not rotation.tried or not self.next_place(error.message):
                    raise
                configuration = self._configuration()
            else:
                return msgspec.structs.replace(plan, leaked_calls="ask")

    def review(self, subject: Plan | Compaction) -> str:
        """``pre_send`` for a request, ``pre_compact`` for a checkpoint."""
        if isinstance(subject, Compaction):
            return refusal(self._conversation, subject)
        self._conversation.line.hooks.run("pre_send", subject)
        return ""

    def permit(self, call: ToolCall) -> Verdict:
        """By the permissions as they are now."""
        return self.permitting.permit(call, self._configuration())

    def next_place(self, reason: str) -> str:
        """The target that takes over from the one that failed for ``reason``; empty where there is none."""
        rotating, conversation = self._configuration().rotating, self._conversation
        if rotating is None:
            return ""
        return conversation.followed.rotation.fail_over(rotating, conversation.history.commits, reason)

    def _configuration(self) -> Configuration:
        return self._conversation.configure(self._sources)


def begin(
    conversation: Conversation, configuration: Configuration, sources: Sources | None = None, *, is_new: bool
) -> Configuration:
    """A turn begins, with a message of its own if it ``is_new``: which of several targets it goes to is chosen."""
    rotating = configuration.rotating
    if rotating is None:
        return configuration
    commits, last = conversation.history.commits, conversation.last_turn.driver
    conversation.followed.rotation.begin(rotating, commits, last, is_new=is_new)
    return conversation.configure(sources)


def explained(conversation: Conversation, error: Exception) -> Exception:
    """``error``, with the models that were perhaps meant, where a refused key came from, and with what became of the
    other targets.
    """
    if isinstance(error, UnknownModelError):
        _name_models(error, conversation.store.rulebook)
    if isinstance(error, ProviderError) and error.next_actions[:1] and error.next_actions[0].startswith(CHECK_KEY):
        _name_key(error, conversation)
    followed = conversation.followed
    if followed.rotating is None:
        return error
    return followed.rotation.with_targets(followed.rotating, conversation.history.commits, error)


def _name_key(error: ProviderError, conversation: Conversation) -> None:
    """Put the place that the refused key came from, and what replaces it, in front of what to do."""
    from thinkback.session.config import keys

    place = conversation.configure().place
    endpoint = place.resolved(conversation.store.rulebook)
    with suppress(ThinkbackError):  # a key file that cannot be read any more is no answer to what was refused
        error.next_actions = keys.replacing(endpoint, place.api_key, place.key_env) or error.next_actions


def _name_models(error: UnknownModelError, rulebook: Rulebook) -> None:
    endpoint, model = str(error.details["endpoint"]), str(error.details["model"])
    known = rulebook.served(endpoint)
    nearest = [] if model in known else rulebook.nearest(endpoint, model)
    error.details["nearest"] = nearest
    fact, *rest = error.next_actions
    if model in known:
        fact = f"{model} is known at {endpoint}: this key may be one that cannot use it"
    elif nearest:
        fact = f"{fact}: did you mean {' or '.join(nearest)}?"
    listed = (f"`thinkback models {endpoint}` lists the known ones",) if known else ()
    error.next_actions = (fact, *listed, *rest)


def ask_for(
    conversation: Conversation, configuration: Configuration, message: Message | None, options: Options
) -> tuple[Ask, Host]:
    """What the turn is asked to do, and its host, with the functions that it may run."""
    functions = runnable(conversation, options)
    options = apps.completed(configuration.app, configuration.target, conversation.history, options)
    permitting = Permitting(conversation, options, functions)
    ask = Ask(
        message=message,
        system=options.system,
        tools=requests.stamped(options.tools, configuration.target.endpoint.dialect),
        runnable=frozenset(permitting.functions),
        max_steps=options.max_steps or configuration.settings(options.settings).max_steps or MAX_STEPS,
        max_retries=options.max_retries,
        keep_text=_keeps_text(conversation, configuration, options),
        asks=options.approve is not None,
    )
    return ask, Host(conversation, options, permitting)


def runnable(conversation: Conversation, options: Options) -> dict[str, PythonTool]:
    """The functions of this call; without ``tools`` those given before, for the tools are still offered."""
    if options.tools is not None:
        return options.functions
    offered = {tool.name for tool in conversation.history.tools}
    return {name: tool for name, tool in conversation.functions.items() if name in offered}


def answer(conversation: Conversation, results: Mapping[str, str], options: Options) -> None:
    """Store ``results``; every other open call must have a function, else nothing is stored."""
    conversation.refresh()
    waiting = requests.open_calls(conversation.history.commits)
    drafts = requests.result_drafts(results, waiting)
    requests.check_answered(waiting, results, runnable(conversation, options))
    conversation.append(drafts)


def turn_of(
    conversation: Conversation, configuration: Configuration, message: Message | None, options: Options
) -> tuple[Turn, Host]:
    """The turn, and its host, with the functions that it may run."""
    ask, host = ask_for(conversation, configuration, message, options)
    if options.tools is not None:
        conversation.functions = options.functions
    conversation.call = options
    return Turn(conversation.history, ask, new_id, random()), host


def driver_of(conversation: Conversation, message: Message | None, options: Options) -> SyncDriver:
    """The driver of a turn that begins now, once a turn that was abandoned is ended. Raises ``BusyError``."""
    conversation.last_turn.settle()
    conversation.take()
    try:
        return _driver(conversation, message, options)
    except BaseException:
        conversation.holder.release()
        raise


def _driver(conversation: Conversation, message: Message | None, options: Options) -> SyncDriver:
    conversation.begin(is_new=message is not None)
    configuration = begin(conversation, conversation.configure(), is_new=message is not None)
    turn, host = turn_of(conversation, configuration, message, options)
    functions = host.permitting.functions
    for name, function in functions.items():
        if function.is_async:
            raise ToolDefinitionError(
                f"tool {name!r} is a coroutine function", next_actions=("use session.aio, or a plain function",)
            )
    if options.approve is not None and is_coroutine(options.approve):
        raise TypeError("approve is a coroutine function: use session.aio, or a plain function")
    place = configuration.place
    return SyncDriver(
        turn,
        host,
        conversation.history,
        conversation.line,
        place.transport or conversation.store.transport(place.proxy, place.verify),
        functions,
        options.timeouts or place.timeouts,
        host.permitting.approval,
        watch_of(conversation, configuration, message, options),
        conversation.holder,
    )


def watch_of(
    conversation: Conversation, configuration: Configuration, message: Message | None, options: Options
) -> Watch | None:
    """Who writes the usage log of a turn and makes its spans; nobody where there is neither."""
    log, settings = conversation.store.usage_log, configuration.settings(options.settings)
    if log is None and not settings.telemetry_spans:
        return None
    from thinkback.session import observing

    return observing.watch_of(conversation.info, log, message, settings)


def refusal(conversation: Conversation, found: Compaction) -> str:
    """Why the program's own hooks do not want this checkpoint; nothing where they do, or it only says why none is."""
    if is_empty(found):
        return ""
    try:
        conversation.line.hooks.run("pre_compact", found)
    except Veto as veto:
        return veto.message
    return ""


def asks_for_summaries(configuration: Configuration, options: Options) -> bool:
    """Whether a model is to write the summaries that nobody asks for."""
    return configuration.place.is_complete and configuration.settings(options.settings).compaction_strategy == "model"


_TEXT = "text"
# What stands in for reasoning that is not kept, by the step of the rule's ``missing`` list.
_INSTEAD = {"placeholder": "a placeholder will go", "flatten-exchange-to-text": "the exchange will go as text"}


def _keeps_text(conversation: Conversation, configuration: Configuration, options: Options) -> bool:
    keep = conversation.store.commit_reasoning and options.reasoning
    target = configuration.target
    if not keep and _TEXT not in conversation.warned and target.rule.later.startswith("must"):
        conversation.warned |= {_TEXT}
        instead = next((told for step, told in _INSTEAD.items() if step in target.rule.missing), "it will be missing")
        warnings.warn(
            f"readable reasoning is not kept, and {target.endpoint.id} wants it back in later turns: {instead} instead",
            stacklevel=outside(),
        )
    return keep
