"""Sub-agents: a tool by which the model has a piece of work done in a child session.

A child is a session of the same family with the tools, settings and permissions of its parent's turn; its answer is
the tool's result, and everything it thought and did stays in its own log. The model says what is to be done and, within
what the person allows, how hard to think about it; never where a request goes, with which model, or what is permitted.
A child ends with the turn that asked for it, and what it has by then is stored.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from thinkback.drive.approval import Approve, is_coroutine
from thinkback.drive.bounds import bounded
from thinkback.drive.stopping import STOP, Stop
from thinkback.drive.tools import PythonTool, ToolOutput, python_tool
from thinkback.errors import ThinkbackError, ToolFailed
from thinkback.log.protocol import TASK_PURPOSE, Origin
from thinkback.session import retry_reasoning_only
from thinkback.session.agents.permitting import Permitting
from thinkback.session.history.children import descend
from thinkback.session.reply import Reply
from thinkback.session.turns import runnable
from thinkback.session.usage import spent
from thinkback.turn.orphans import last_system
from thinkback.turn.permissions import PermissionAnswer, PermissionRequest

if TYPE_CHECKING:
    from thinkback.model.target import Settings
    from thinkback.session.conversation import Conversation
    from thinkback.session.requests import Options
    from thinkback.session.session import Session

T = TypeVar("T")
TASK = "task"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# How much a sub-agent may think where the person said nothing about effort at all.
USUAL_EFFORT = "medium"
BRIEF = (
    "You are a sub-agent: another agent gave you the task below. It sees nothing of your work but your last message, "
    "so put all that matters there."
)
Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]


def task_tool(conversation: Conversation, tokens: int, depth: int | None = None) -> PythonTool:
    """The tool ``task`` of ``conversation``. ``depth`` levels of sub-agents are allowed; unset, as the settings say."""
    return python_tool(SubAgents(conversation, tokens, depth).task, name=TASK, effect="reads")


class SubAgents:
    """The sub-agents of one session. ``tokens`` bounds the answer of each."""

    def __init__(self, conversation: Conversation, tokens: int, depth: int | None) -> None:
        settings = conversation.current().settings()
        self._conversation = conversation
        self._tokens = tokens
        self._depth = settings.agents_depth if depth is None else depth
        self._slots = threading.Semaphore(settings.agents_parallel)
        self._starting = threading.Lock()
        self._asking, self._asking_async = threading.Lock(), asyncio.Lock()
        self._spent = 0
        self._permits: Permitting | None = None

    def task(self, prompt: str, purpose: str = "", effort: Effort = "") -> ToolOutput:
        """Have a piece of work done by a sub-agent with the same tools and permissions, which begins without this
        conversation: prompt must say all that it needs to know. Gives its answer. Several calls in one response run at
        the same time. purpose is a short name for people; effort says how hard it is to think, if not as usual.
        """
        if not prompt.strip():
            raise ToolFailed("prompt is empty", next_actions=("Say what is to be done.",))
        stop = STOP.get()
        with self._slots:
            if stop.is_set:
                raise ToolFailed("the turn was interrupted")
            with self._starting:
                child, options = self._child(purpose or " ".join(prompt.split())[:80], effort, stop)
            try:
                return self._answer(child, _drive(child, prompt, options, stop))
            except ThinkbackError as error:
                return ToolOutput(f"The sub-agent {child.info.name} failed: {error.message}", True)
            finally:
                with self._starting:
                    self._spent += spent(child)

    def _child(self, purpose: str, effort: str, stop: Stop) -> tuple[Conversation, dict[str, Any]]:
        """A child, and the options of its turn: those of the turn under way."""
        conversation = self._conversation
        call = conversation.call
        settings = conversation.configure().settings(call.settings)
        own = {**call.settings, **_allowed(effort, settings), **self._budget(settings)}
        origin = Origin(conversation.info.id, conversation.line.branch, None, f"{TASK_PURPOSE}{purpose}")
        child = descend(conversation, None, origin)
        # What the program refuses or watches, it does here too.
        child.line.hooks = conversation.line.hooks
        _ = conversation.store.executor  # made once, before children in several threads want it
        prompt = last_system(conversation.history.commits)
        return child, {
            "tools": self._tools(child, call),
            "system": f"{prompt}\n\n{BRIEF}" if prompt else BRIEF,
            "settings": own,
            "params": call.params,
            "reasoning": call.reasoning,
            "max_steps": call.max_steps,
            "max_retries": call.max_retries,
            "stream": call.stream,
            "timeouts": call.timeouts,
            "approve": self._approve(child.info.name, call, stop),
        }

    def _tools(self, child: Conversation, call: Options) -> list[PythonTool]:
        """The functions of the parent's turn; sub-agents of its own only where another level is allowed."""
        tools = [tool for name, tool in runnable(self._conversation, call).items() if name != TASK]
        return [*tools, task_tool(child, self._tokens, self._depth - 1)] if self._depth > 1 else tools

    def _approve(self, name: str, call: Options, stop: Stop) -> Approve | None:
        """How the child's calls are put to the person: as the parent's are, one at a time, with who asks."""
        approve = call.approve
        if approve is None:
            return None

        def attributed(request: PermissionRequest) -> PermissionRequest:
            return msgspec.structs.replace(request, reason=f"sub-agent {name}: {request.reason}")

        permitting = self._permitting(call)

        def is_allowed(request: PermissionRequest) -> bool:
            """Whether the person said so for all sub-agents, while this one ran."""
            return permitting.permit(request.call).action == "allow"

        def heard(request: PermissionRequest, said: Any) -> Any:
            if isinstance(said, PermissionAnswer) and said.allow and said.always:
                permitting.remember(request)
            return said

        async def ask_async(request: PermissionRequest) -> Any:
            async with self._asking_async:
                return is_allowed(request) or heard(request, await approve(attributed(request)))  # type: ignore[misc]

        def ask(request: PermissionRequest) -> Any:
            with self._asking:
                if stop.is_set:
                    return False
                return is_allowed(request) or heard(request, approve(attributed(request)))

        return ask_async if is_coroutine(approve) else ask

    def _permitting(self, call: Options) -> Permitting:
        """What is permitted in this turn of the parent, and with it to all its sub-agents."""
        conversation = self._conversation
        if self._permits is None or self._permits.options is not call:
            self._permits = Permitting(conversation, call, runnable(conversation, call))
        return self._permits

    def _budget(self, settings: Settings) -> dict[str, object]:
        """What is left of the parent's budget of reasoning."""
        if settings.budget is None:
            return {}
        left = settings.budget - spent(self._conversation) - self._spent
        if left < 1 and settings.budget_action == "stop":
            raise ToolFailed("the budget of reasoning is spent: there is none for a sub-agent")
        return {"reasoning.budget": max(1, left)}

    def _answer(self, child: Conversation, reply: Reply) -> ToolOutput:
        """What the model is told."""
        used = reply.tokens
        thought = f", {used.reasoning:,} tokens of reasoning" if used is not None and used.reasoning else ""
        note = f"[sub-agent {child.info.name}: {len(reply.steps)} responses{thought}; state {reply.state}]"
        answer = bounded(reply.text.strip(), self._tokens) or "[it said nothing]"
        return ToolOutput(f"{answer}\n{note}", reply.state != "completed" or not reply.text.strip())


def _allowed(effort: str, settings: Settings) -> dict[str, object]:
    """``effort`` as a setting, if the person lets sub-agents think that hard."""
    if not effort:
        return {}
    most = settings.agents_max_effort or settings.effort or USUAL_EFFORT
    if EFFORTS.index(effort) > EFFORTS.index(most):
        raise ToolFailed(
            f"effort {effort} is more than the user allows a sub-agent",
            next_actions=(f"Use one of {', '.join(EFFORTS[: EFFORTS.index(most) + 1])}, or leave effort out.",),
        )
    return {"reasoning.effort": effort}


def _drive(child: Conversation, prompt: str, options: dict[str, Any], stop: Stop) -> Reply:
    """Run the child's turn to its end, in the parent's event loop or in one of its own, which can be interrupted."""
    from thinkback.session.session import Session

    session = Session(child)

    def turn() -> Coroutine[Any, Any, Reply]:
        return retry_reasoning_only.chat_async(session, prompt, **options)

    if stop.loop is not None:
        return _in_loop(stop.loop, turn, stop)
    if child.configure().place.transport is None:
        return _in_own_loop(turn, stop)
    # A transport of the program's own, for threads: between two pieces of what it brings the turn can be ended.
    with retry_reasoning_only.stream(session, prompt, **options) as stream:
        for _ in stream:
            if stop.is_set:
                raise ToolFailed("the turn was interrupted")
        return stream.reply


def _in_own_loop(turn: Callable[[], Coroutine[Any, Any, T]], stop: Stop) -> T:
    async def interruptible() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with stop.calls(_from_outside(loop, task.cancel)):
            return await turn()

    try:
        return asyncio.run(interruptible())
    except asyncio.CancelledError:
        raise ToolFailed("the turn was interrupted") from None


def _in_loop(loop: asyncio.AbstractEventLoop, turn: Callable[[], Coroutine[Any, Any, T]], stop: Stop) -> T:
    done: Future[T] = Future()
    tasks: list[asyncio.Task[T]] = []

    def begin() -> None:
        tasks.append(loop.create_task(turn()))
        tasks[0].add_done_callback(over)

    def over(task: asyncio.Task[T]) -> None:
        error = ToolFailed("the turn was interrupted") if task.cancelled() else task.exception()
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(task.result())

    loop.call_soon_threadsafe(begin)
    with stop.calls(_from_outside(loop, lambda: tasks[0].cancel())):
        return done.result()


def _from_outside(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> Callable[[], None]:
    """``work`` in ``loop``, from any thread; nothing where the loop has ended."""

    def call() -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(work)

    return call


def names(session: Session) -> Sequence[str]:
    """The sessions of the sub-agents that ``session`` had, the oldest first."""
    log = session.conversation.store.log
    found = [info for info in log.list_sessions() if info.parent == session.id and info.is_task]
    return [info.name for info in sorted(found, key=lambda info: (info.created, info.name))]
