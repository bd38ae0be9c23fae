"""What the span of an exchange says, for gateway and transports alike. Imported only where there are spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thinkback.observe import spans as names
from thinkback.observe.spans import Attribute, Spans

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from thinkback.proxy.report import Report


def facts_of(report: Report) -> dict[str, Attribute | None]:
    """Attributes out of what is known of an exchange."""
    endpoint, _, served = report.upstream.partition("/")
    finish = report.header.finish if report.header is not None else ""
    return {
        names.PROVIDER: names.provider_of(endpoint),
        names.REQUEST_MODEL: report.model,
        names.RESPONSE_MODEL: report.served or served,
        names.RESPONSE_ID: report.response,
        names.FINISH_REASONS: (finish,) if finish else (),
        names.CONVERSATION: report.session,
        names.INPUT_TOKENS: report.input_tokens,
        names.OUTPUT_TOKENS: report.output_tokens,
        names.REASONING_TOKENS: report.reasoning_tokens,
        names.CACHED_TOKENS: report.cached_tokens,
        "thinkback.response": report.response,
        "thinkback.reattach": report.reattach,
        "thinkback.attempts": report.attempts,
        **names.facts_of(report.plan, report.record),
    }


def tell(spans: Spans, span: Span, report: Report) -> None:
    """Put what was said on ``span``, without a key that somebody repeated in it."""
    mask = report.plan.without_key if report.plan is not None else str
    spans.tell(span, report.asked, report.answered, report.finish, report.header, mask)
