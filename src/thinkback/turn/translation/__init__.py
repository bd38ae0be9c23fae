"""What a request of one dialect asks for besides its messages, asked of an endpoint that speaks another."""

from thinkback.turn.translation.translate import Translated, plan_without_refused, translate

__all__ = ["Translated", "plan_without_refused", "translate"]
