"""What a session's settings permit, read at each call, and the rules that a person adds while a turn runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from thinkback.drive.approval import Approval
from thinkback.drive.tools import PythonTool, fault_of
from thinkback.model.blocks import ToolCall
from thinkback.model.target import Settings
from thinkback.session.requests import Options
from thinkback.settings.permissions import Rule, read_rules, write_rules
from thinkback.turn.permissions import PermissionRequest, Permissions, Verdict, decide, with_rule

if TYPE_CHECKING:
    from thinkback.session.configuration import Configuration
    from thinkback.session.conversation import Conversation


class Permitting:
    """The permissions of one turn, which may run ``functions``.

    Rules that were added hold in it whatever the call's own settings say.
    """

    def __init__(self, conversation: Conversation, options: Options, functions: Mapping[str, PythonTool]) -> None:
        self._conversation = conversation
        self.options = options
        self.functions = functions
        self._added: list[tuple[Rule, Rule | None]] = []

    @property
    def approval(self) -> Approval | None:
        """How a person is asked; nothing where nobody is there."""
        approve = self.options.approve
        return Approval(approve, self.remember) if approve is not None else None

    def permit(self, call: ToolCall, configuration: Configuration | None = None) -> Verdict:
        """Decide about ``call`` by ``configuration``, or the settings as they are now; nobody is asked in vain."""
        settings = (configuration or self._conversation.configure()).settings(self.options.settings)
        rules = rules_of(settings)
        for new, asked in self._added:
            rules = rules if new in rules else with_rule(rules, new, asked)
        function = self.functions.get(call.name)
        effect = function.effect if function is not None else "runs"
        verdict = decide(Permissions(settings.permissions_mode, rules), call, effect)
        fault = fault_of(function, call) if function is not None and verdict.action == "ask" else ""
        return Verdict("allow", effect, fault=fault) if fault else verdict

    def remember(self, request: PermissionRequest) -> None:
        """Keep the rule in the settings of the session, behind the one that asked."""
        asked = self.permit(request.call).rule
        for new in read_rules(request.always) or ():
            self._added.append((new, asked))
            rules = with_rule(rules_of(self._conversation.configure().settings()), new, asked)
            self._conversation.set("permissions.rules", write_rules(rules))


def rules_of(settings: Settings) -> tuple[Rule, ...]:
    """The rules in force."""
    return read_rules(settings.permissions_rules or "") or ()
