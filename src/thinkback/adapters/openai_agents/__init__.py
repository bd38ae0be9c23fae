"""openai-agents: its sessions in the log."""

from thinkback.adapters.openai_agents.session import Session as Session

__all__ = ["Session"]
