"""Neutral settings to an endpoint's own parameters, by data; what became of each is reported.

Promises: parameters that the caller gave win; nothing is sent to a host that is not known; one control is said once, in
the words of one dialect. What the endpoint is known to refuse is refused here, before the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thinkback.compile.policy import thinks
from thinkback.errors import SettingError
from thinkback.model.plan import Control, ControlState
from thinkback.model.rule import Budget, Controls, Forbidden
from thinkback.model.target import Settings, Target, lookup, merge
from thinkback.model.target import nested as nested
from thinkback.wire.registry import dialect

UNKNOWN = "unknown"
_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
READABLE = "reasoning.readable"
_ENABLED, _DISPLAY = "reasoning.enabled", "reasoning.display"
ASKS = 1
"""The defaults (``session.defaults``) from which on a model that can reason is asked to."""
LEAST_ROOM = 1024
"""The output limit, in tokens, below which nothing is asked for by default: the smallest budget of any provider."""
_NO_WAY = "{} has no way to say it for {}"


class Resolver:
    """What one request says of the settings: ``params``, native parameters included, ``headers``, and ``controls``.

    ``tools``: the request offers some.
    """

    def __init__(self, settings: Settings, target: Target, native: dict[str, Any], *, tools: bool = False) -> None:
        self._settings = settings
        self._tools = tools
        self._target = target
        self._native = native
        self._given = _folded(native)
        self.controls: list[Control] = []
        self.headers: dict[str, str] = {}
        # What beats the request's own words: they are not those that its client is answered by.
        self._readable: dict[str, Any] = {}
        self.params: dict[str, Any] = _base(target, native, strict=settings.strict or target.endpoint.strict)
        if target.endpoint.id == UNKNOWN:
            for key, value in _requested(settings):
                self._note(key, value, "absent", "the host is not known, so nothing is sent to it")
        else:
            self._resolve()
        self.params = merge(_united(self.params, native), self._readable)
        _check_forbidden(self.params, target)

    def _resolve(self) -> None:
        settings, rule = self._settings, self._target.rule
        if settings.strict or self._target.endpoint.strict:
            self._refuse_all()
        else:
            self._say_thinking()
            self._say_display()
        if settings.verbosity is not None:
            self._say("text.verbosity", settings.verbosity, rule.controls.verbosity.get(settings.verbosity))
        if settings.server_state and rule.server_state is None:
            self._say("session.serverState", "true", None)
        elif settings.server_state:
            self._note("session.serverState", "true", "emitted")

    def _say_thinking(self) -> None:
        """Whether and how much to think, unless the request has words of its own for it."""
        given = next((path for path in _words(self._target.rule.controls) if self._has(path)), "")
        if not given:
            self._say_reasoning()
            return
        for key, value in _requested(self._settings):
            if key in ("reasoning.enabled", "reasoning.effort", "reasoning.maxTokens"):
                self._note(key, value, "suppressed", f"the request has {given} of its own")

    def _refuse_all(self) -> None:
        """In a mode without reasoning a control of it is a mistake."""
        for key, value in _requested(self._settings):
            if key in ("reasoning.effort", "reasoning.maxTokens", "reasoning.display", "reasoning.summary"):
                raise SettingError(
                    f"{key} = {value} cannot be sent: reasoning.strict is on for {self._target.endpoint.id}",
                    details={"key": key, "value": value},
                    next_actions=(f"unset {key}", "or set reasoning.strict to false"),
                )

    def _say_reasoning(self) -> None:
        settings, controls = self._settings, self._target.rule.controls
        if not settings.enabled:
            self._say_off()
            for key, value in _requested(settings):
                if key in ("reasoning.effort", "reasoning.maxTokens"):
                    self._note(key, value, "suppressed", "reasoning.enabled is false")
            return
        begun = (settings.defaults or 0) >= ASKS
        if not begun and _ENABLED in settings.explicit:
            self._say_on_as_before()
        before = self.params
        exclude = settings.max_tokens is not None and (controls.either or controls.effort_budgets)
        if settings.effort is not None and exclude:
            self._note("reasoning.effort", settings.effort, "suppressed", "the endpoint takes it or a budget, not both")
        elif settings.effort is not None:
            self._say_effort(settings.effort)
        if settings.max_tokens is not None:
            self._say_budget(settings.max_tokens)
        if begun:
            self._ask(is_said=self.params is not before and thinks(self._target.rule, self.params))

    def _ask(self, *, is_said: bool) -> None:
        """Ask for reasoning, where a person does or the defaults that the session began with do; ``is_said``: an effort
        or a budget asks for it already.

        Both say the same words, so that setting what holds by default changes no byte. What the request says itself
        beats the default.
        """
        is_asked = _ENABLED in self._settings.explicit
        if is_said:
            if is_asked:
                self._note(_ENABLED, "true", "represented", "said by how much to reason")
        elif is_asked:
            self._say_on()
        elif not (self._target.guessed or self._target.rule.controls.mixed):
            before, noted = self.params, len(self.controls)
            self._say_on()
            reason = self._excluded(before)
            if reason:
                self.params, self.controls[noted:] = before, []
                self._note(_ENABLED, "true", "suppressed", reason)

    def _say_on(self) -> None:
        """The words for it, or the least effort or budget with which the model reasons, unless a person chose."""
        settings, rule = self._settings, self._target.rule
        if settings.effort == "none":
            return
        least = self._least()
        if rule.controls.on and not least:
            self._say(_ENABLED, "true", rule.controls.on)
        elif settings.effort is None and settings.max_tokens is None and (least or not thinks(rule, self.params)):
            self._say_effort(least or _cheapest(self._target, self.params), _ENABLED, "true")

    def _least(self) -> str:
        """The least effort, where the words for "on" are those of an effort."""
        on = self._target.rule.controls.on
        table = self._target.rule.controls.effort
        same = (
            word
            for word in efforts(self._target)
            if word != "none" and [*_leaves(table.get(word, {}))] == [*_leaves(on)]
        )
        return next(same, "") if on else ""

    def _excluded(self, before: dict[str, Any]) -> str:
        """Why the request leaves reasoning no place that was not asked for ``before``: a parameter of its own that
        excludes it, or too small a limit of output.
        """
        row = _forbidden(merge(self.params, self._native), self._target)
        if row is not None and _forbidden(merge(before, self._native), self._target) is None:
            return f"the request has {row.path} = {lookup(self._native, row.path)!r}, and {row.reason}"
        for path in dialect(self._target.endpoint.dialect).parameters.names["max_tokens"]:
            limit = lookup(self._given, _fold(path))
            if isinstance(limit, int) and limit < LEAST_ROOM:
                return f"the request has {path} = {limit}, which leaves no room for it"
        return ""

    def _say_on_as_before(self) -> None:
        """In sessions of older defaults: a model that only thinks with an effort gets a medium one."""
        settings, rule = self._settings, self._target.rule
        if rule.controls.on:
            self._say(_ENABLED, "true", rule.controls.on)
        elif settings.effort is None and settings.max_tokens is None and not thinks(rule, self.params):
            self._say_effort("medium", _ENABLED, "true")

    def _say_off(self) -> None:
        controls = self._target.rule.controls
        efforts = self._target.info.efforts
        if controls.always_on or (efforts and "none" not in efforts and not controls.off):
            reason = f"{self._target.model} cannot be told not to reason"
            self._note("reasoning.enabled", "false", "unrepresentable", reason)
            return
        self._say("reasoning.enabled", "false", controls.off or controls.effort.get("none"))

    def _say_effort(self, word: str, key: str = "reasoning.effort", value: str = "") -> None:
        """The word itself, or the nearest the model takes; a word with an empty table is known to be refused."""
        target, value = self._target, value or word
        controls = target.rule.controls
        table = controls.effort
        if table.get(word) == {}:
            self._note(key, value, "suppressed", f"{target.model} refuses it")
            return
        if word in controls.effort_budgets:
            self._say_budget(controls.effort_budgets[word], key, value)
            return
        takes = [known for known in _ORDER if table.get(known) and known in (target.info.efforts or _ORDER)]
        if not takes:
            self._say(key, value, table.get(word))
            return
        sent = word if word in takes else nearest(word, takes)
        if sent is None:
            self._note(key, value, "unrepresentable", f"{target.model} takes {', '.join(takes)}")
            return
        self._say(key, value, table[sent], sent if value == word else "")

    def _say_budget(self, wanted: int, key: str = "reasoning.maxTokens", word: str = "") -> None:
        """A budget that fits; ``word`` is the effort it stands for."""
        value, target = word or str(wanted), self._target
        controls = target.rule.controls
        budget = controls.budget or (Budget(controls.max_tokens) if controls.max_tokens else None)
        if budget is None:
            self._say(key, value, None)
            return
        tokens, why = wanted, "said as a budget" if word else ""
        most = min(filter(None, (target.info.max_output, budget.ceiling)), default=wanted)
        if most < tokens:
            tokens, why = most, f"{target.model} takes at most {most} tokens"
        if tokens < budget.floor:
            tokens, why = budget.floor, f"{target.endpoint.id} takes no less than {budget.floor}"
        limit = lookup(self._native, budget.below) or lookup(self.params, budget.below) if budget.below else None
        # Whoever gave a number gets it; a word must leave room for an answer.
        room = (max(budget.floor, limit * 3 // 4) if word else limit - 1) if isinstance(limit, int) else tokens
        if isinstance(limit, int) and limit <= budget.floor:
            reason = f"no budget of at least {budget.floor} fits below {budget.below} = {limit}"
            self._note(key, value, "suppressed", reason)
            return
        if room < tokens:
            tokens, why = room, f"it must be below {budget.below} = {limit}"
        self.params = merge(self.params, merge(budget.params, nested(budget.path, tokens)))
        state: ControlState = "represented" if why else "emitted"
        self._note(key, value, state, f"{why}: {tokens} is sent" if why else "")

    def _say_readable(self) -> bool:
        """Ask for readable reasoning that the client did not ask for; whether that is so."""
        rule, display = self._target.rule, self._target.rule.controls.display
        words, hidden = display.get("summarized", {}), display.get("omitted", {})
        if self._tools:
            words = rule.controls.display_with_tools.get("summarized", words)
        paths = [path for path in _leaves(words) if lookup(words, path) != lookup(hidden, path)]
        told = [path for path in paths if self._has(path)]
        beside = dialect(self._target.endpoint.dialect).parameters.reasoning.shown
        others = [path for path in beside if path not in paths and self._has(path)]
        said = self._settings.summary is not None or _DISPLAY in self._settings.explicit
        reason = ""
        if not paths:
            reason = _NO_WAY.format(self._target.endpoint.id, self._target.model)
        elif not self._settings.enabled or not thinks(rule, merge(self.params, self._native)):
            reason = "the model does not reason on this request"
        elif said:
            reason = "reasoning.display or reasoning.summary says it"
        elif any(lookup(self._native, path) != lookup(hidden, path) for path in told):
            reason = f"the request has {told[0]} of its own"
        elif others:
            reason = f"the request has {others[0]} of its own"
        elif not told and display.get("auto") == {}:
            reason = "it is readable unasked"
        self._note(READABLE, "true", "suppressed" if reason else "emitted", reason or "for the log alone")
        if reason:
            return False
        for path in paths:
            self._readable = merge(self._readable, nested(path, lookup(words, path)))
        self.headers = dict(rule.controls.display_headers.get("summarized", {}))
        return True

    def _say_display(self) -> None:
        settings, controls = self._settings, self._target.rule.controls
        if settings.readable and self._say_readable():
            return
        shown, asked = settings.display, _DISPLAY in settings.explicit
        if settings.readable is False and settings.defaults is None and settings.summary is None and not asked:
            return  # another program says in this dialect's own words what it wants to see
        if settings.summary is None:
            usual = controls.display.get(shown)
            words = controls.display_with_tools.get(shown, usual) if self._tools else usual
            self._show(_DISPLAY, shown, shown, words, asked=asked, instead=words != usual)
            return
        if asked and shown != "auto":
            self._note(_DISPLAY, shown, "suppressed", "reasoning.summary says it")
        word, shown = settings.summary, "omitted" if settings.summary == "none" else "summarized"
        words = controls.summary.get(word, controls.display.get(shown))
        self._show("reasoning.summary", word, shown, words, asked=True, instead=word not in controls.summary)

    def _show(
        self, key: str, value: str, shown: str, words: dict[str, Any] | None, *, asked: bool, instead: bool
    ) -> None:
        """Ask for reasoning to be ``shown`` by ``words``; ``instead``: they are not those of ``value`` itself."""
        settings, rule = self._settings, self._target.rule
        if words is None:
            if asked and (key, value) != (_DISPLAY, "auto"):
                self._say(key, value, None)
            return
        given = next((path for path in _leaves(words) if self._has(path)), "")
        silent = settings.effort == "none" and rule.controls.off_hides
        is_off = bool(rule.controls.off) and (silent or not settings.enabled)
        if given or is_off or not thinks(rule, merge(self.params, self._native)):
            if asked:
                reason = f"the request has {given} of its own" if given else "the model does not reason on this request"
                self._note(key, value, "suppressed", reason)
            return
        self.params = merge(self.params, words)
        self.headers = dict(rule.controls.display_headers.get(shown, {}))
        if asked and instead:
            said = ", ".join(f"{path}={lookup(words, path)}" for path in _leaves(words)) or "nothing"
            where = " where tools are offered" if key == _DISPLAY else ""
            self._note(key, value, "represented", f"said as {said}{where}")
        elif asked:
            nothing = "nothing readable will be stored, and a search will find nothing"
            self._note(key, value, "emitted", nothing if shown == "omitted" else "")

    def _say(self, key: str, value: str, words: dict[str, Any] | None, sent: str = "") -> None:
        """Put ``words`` into the request; ``sent`` is the neutral word they stand for, if not the one asked for."""
        if not words:
            self._note(key, value, "unrepresentable", _NO_WAY.format(self._target.endpoint.id, self._target.model))
            return
        self.params = merge(self.params, words)
        said = [str(lookup(words, path)).lower() for path in _leaves(words)]
        literal = value in said or value in ("true", "false")
        if sent not in ("", value):
            self._note(key, value, "represented", f"{self._target.model} does not take it: {sent} is sent")
        elif literal:
            self._note(key, value, "emitted")
        else:
            said = [f"{path}={lookup(words, path)}" for path in _leaves(words)]
            self._note(key, value, "represented", f"said as {', '.join(said)}")

    def _has(self, path: str) -> bool:
        """Whether the request itself says something at ``path``, in whichever way the words are written."""
        return lookup(self._given, _fold(path)) is not None

    def _note(self, key: str, value: str, state: ControlState, reason: str = "") -> None:
        self.controls.append(Control(key, value, state, reason))


def _fold(name: str) -> str:
    """Google takes ``thinking_budget`` for ``thinkingBudget``, and refuses a request with both."""
    return name.replace("_", "").lower()


def _folded(table: dict[str, Any]) -> dict[str, Any]:
    return {_fold(key): _folded(value) if isinstance(value, dict) else value for key, value in table.items()}


def _requested(settings: Settings) -> Iterator[tuple[str, str]]:
    """The controls a person or the endpoint's data asks for, as key and word."""
    if not settings.enabled:
        yield "reasoning.enabled", "false"
    elif "reasoning.enabled" in settings.explicit:
        yield "reasoning.enabled", "true"
    if settings.effort is not None:
        yield "reasoning.effort", settings.effort
    if settings.max_tokens is not None:
        yield "reasoning.maxTokens", str(settings.max_tokens)
    if "reasoning.display" in settings.explicit and settings.display != "auto":
        yield "reasoning.display", settings.display
    if settings.summary is not None:
        yield "reasoning.summary", settings.summary
    if settings.verbosity is not None:
        yield "text.verbosity", settings.verbosity
    if settings.server_state:
        yield "session.serverState", "true"


def _base(target: Target, native: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    """What goes with every request: the endpoint's parameters, the rule's, and the output limit it must have.

    Those of a rule are about reasoning, so that in strict mode they stay away.
    """
    rule = target.rule
    params = target.endpoint.params if strict else merge(target.endpoint.params, rule.params)
    limit = target.info.max_output or rule.limit
    if rule.limit_param and limit and lookup(native, rule.limit_param) is None:
        params = merge(params, nested(rule.limit_param, min(limit, rule.limit) if rule.limit else limit))
    return params


def _united(base: dict[str, Any], native: dict[str, Any]) -> dict[str, Any]:
    """``native`` over ``base``; a list that both have becomes one, because each asks for something."""
    params = merge(base, native)
    for key, value in base.items():
        given = native.get(key)
        if isinstance(value, list) and isinstance(given, list):
            params[key] = [*given, *(item for item in value if item not in given)]
    return params


def _check_forbidden(params: dict[str, Any], target: Target) -> None:
    """Refuse what the endpoint would refuse, before it costs anything."""
    row = _forbidden(params, target)
    if row is not None:
        value = lookup(params, row.path)
        raise SettingError(
            f"{target.endpoint.id} refuses {row.path} = {value!r} for {target.model}: {row.reason}",
            details={"key": row.path, "value": value, "rule": target.rule.id},
            next_actions=(f"leave {row.path} out", "or change the rule in a rule file of your own"),
        )


def _forbidden(params: dict[str, Any], target: Target) -> Forbidden | None:
    """What of ``params`` the endpoint refuses, if anything."""
    is_thinking = thinks(target.rule, params)
    for row in target.rule.forbids:
        value = lookup(params, row.path)
        refused = value not in row.allowed and (not row.values or value in row.values)
        if value is not None and refused and _holds(row, is_thinking, params):
            return row
    return None


def _holds(row: Forbidden, is_thinking: bool, params: dict[str, Any]) -> bool:
    if any(lookup(params, path) != value for path, value in row.beside.items()):
        return False
    return row.when == "always" or (row.when == "thinking") == is_thinking


def efforts(target: Target) -> list[str]:
    """The efforts that can be said to the model, lowest first; of several that go out as the same, the lowest."""
    controls, taken = target.rule.controls, target.info.efforts or _ORDER
    found: list[str] = []
    for word in _ORDER:
        table = controls.effort.get(word) if word in taken else None
        if word in controls.effort_budgets or (table and all(controls.effort.get(known) != table for known in found)):
            found.append(word)
    return found


def _cheapest(target: Target, params: dict[str, Any]) -> str:
    """The lowest effort with which the model reasons; ``medium`` where no effort is known to."""
    controls = target.rule.controls
    for word in efforts(target):
        sent = merge(params, controls.effort.get(word, {}))
        if word != "none" and (word in controls.effort_budgets or thinks(target.rule, sent)):
            return word
    return "medium"


def effort_sent(target: Target, params: dict[str, Any]) -> str | None:
    """The effort that a request with ``params`` asks for, in the neutral word; ``None`` where it says none."""
    tables = ((word, target.rule.controls.effort.get(word, {})) for word in efforts(target))
    return next((word for word, table in tables if table and _says(params, table)), None)


def _says(params: dict[str, Any], table: dict[str, Any]) -> bool:
    return all(lookup(params, path) == lookup(table, path) for path in _leaves(table))


def nearest(word: str, takes: list[str]) -> str | None:
    """The nearest effort that is taken, the higher of two; none in place of "none" is another thing altogether."""
    if word == "none":
        return None
    usable = [known for known in takes if known != "none"]
    at = _ORDER.index(word)
    return min(usable, key=lambda known: (abs(_ORDER.index(known) - at), -_ORDER.index(known)), default=None)


def _words(controls: Controls) -> tuple[str, ...]:
    """Dotted paths of all parameters that say whether and how much to think.

    They are found once: what is kept holds the controls, so that no others can have their identity.
    """
    found = _WORDS.get(id(controls))
    if found is None:
        if len(_WORDS) >= _MOST_WORDS:
            _WORDS.clear()
        tables = (controls.on, controls.off, *controls.effort.values())
        paths = {path for table in tables for path in _leaves(table)} | {_path(controls.budget, controls.max_tokens)}
        found = _WORDS[id(controls)] = (controls, tuple(sorted(paths.union(controls.aliases) - {""})))
    return found[1]


_WORDS: dict[int, tuple[Controls, tuple[str, ...]]] = {}
_MOST_WORDS = 64


def _leaves(table: dict[str, Any], before: str = "") -> Iterator[str]:
    """Dotted paths of everything in ``table`` that is no table itself."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{key}.")
        else:
            yield f"{before}{key}"


def _path(budget: Budget | None, plain: str) -> str:
    return budget.path if budget is not None else plain
