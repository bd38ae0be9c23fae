"""``python -m bench.gateway_clients.worker``: has the conversations that come in as lines of JSON, one after another.

Each answer is a line of JSON: ``{"said": [...]}`` or ``{"failed": "..."}``. What clients print goes to the error
output.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import warnings

from bench.gateway_clients.job import Job
from bench.gateway_clients.scripts import PYTHON


def main() -> None:
    """Until the input ends."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    answers, scripts = sys.stdout, {script.name: script.hold for script in PYTHON if script.hold}
    with contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            job = Job(**json.loads(line))
            try:
                found: dict[str, object] = {"said": scripts[job.client](job)}
            # Whatever a client raises, and for whatever reason, is its result.
            except Exception as error:
                found = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
