"""Laws say what is true, not how long it takes: the machine that checks them may be busy."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("steady", deadline=None)
hypothesis.settings.load_profile("steady")
