"""What a request of one dialect asks for besides its messages, asked of an endpoint that speaks another."""

from thinkback.turn.translation.own_fields import own_fields, without_own
from thinkback.turn.translation.translate import Translated, plan_without_refused, translate

__all__ = ["Translated", "own_fields", "plan_without_refused", "translate", "without_own"]
