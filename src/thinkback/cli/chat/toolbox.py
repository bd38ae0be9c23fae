"""The tools of the session's app, opened once and kept from turn to turn: servers are started, not restarted."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from thinkback.cli.chat.progress import working

if TYPE_CHECKING:
    from thinkback.drive.tools import PythonTool
    from thinkback.session.session import Session


class Toolbox:
    """What the model may call. Files are confined to the directory that the chat was started in."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._of: tuple[Session, tuple[str, ...]] | None = None
        self._tools: list[PythonTool] | None = None

    def tools(self, session: Session) -> list[PythonTool] | None:
        """The tools of the session's app; ``None`` where there are none. Raises ``SettingError`` for one unknown."""
        app = session.app
        wanted = (session, app.tools if app is not None else ())
        if wanted != self._of:
            self.close()
            self._tools = self._opened(*wanted)
            self._of = wanted
        return self._tools

    def _opened(self, session: Session, names: tuple[str, ...]) -> list[PythonTool] | None:
        if not names:
            return None
        from thinkback.session.agents.toolbox import toolbox

        with working("starting tools"):
            return self._open.enter_context(toolbox(session, names))

    def close(self) -> None:
        """End what the tools have running."""
        self._of, self._tools = None, None
        self._open.close()
