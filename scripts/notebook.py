"""Runs a notebook in a real kernel, by nbconvert, against the referee: `make notebook`.

Fails unless the stream's output was replaced while it came and ends as the reply, and every output shows what was said
as text.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

from thinkback_referee import Referee

CELLS = (
    "import os, thinkback\n"
    "store = thinkback.open(':memory:', rules={}, settings={})\n"
    "session = store.session('talk', endpoint='deepseek', model='deepseek-v4-pro', base_url=os.environ['REFEREE'])\n"
    "stream = session.stream('Where is <script>alert(1)</script>?')\n"
    "stream.display()",
    "stream.reply",
    "session",
    "store",
    "session.why()",
    "session.log()[0]",
)


def main() -> int:
    """Run the cells and look at what they show."""
    book: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    with Referee(pace=0.02) as referee, tempfile.TemporaryDirectory() as place:
        own = {"REFEREE": referee.base_url("deepseek"), "DEEPSEEK_API_KEY": "any", "THINKBACK_CONFIG_DIR": place}
        os.environ.update(own)
        ExecutePreprocessor(timeout=30).preprocess(book)
    pages = [[output["data"].get("text/html", "") for output in cell["outputs"]] for cell in book["cells"]]
    faults = [f"cell {at + 1} shows {len(shown)} outputs, not 1" for at, shown in enumerate(pages) if len(shown) != 1]
    told = ["" if len(shown) != 1 else shown[0] for shown in pages]
    faults += [f"cell {at + 1} shows a script" for at, page in enumerate(told) if "<script" in page]
    faults += [f"cell {at + 1} shows nothing" for at, page in enumerate(told) if not page]
    if told[0] != told[1] or "<summary>Reasoning</summary>" not in told[0]:
        faults.append("the stream does not end as the reply")
    if "alert(1)" not in told[2]:
        faults.append("the question is not in the session")
    print("\n".join(faults) or "notebook: a stream, a reply, a session, a store, decisions and a commit are shown")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
