"""The programs in ``examples``, run as they stand at the referee: keys and addresses are in the environment alone.

``python -m bench.examples NAME...`` runs some in this process, one after another.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from bench.peers.places import KEY
from thinkback_referee import Referee

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "examples"
NAMES = tuple(sorted(file.stem for file in PLACE.glob("*.py")))
_ENDPOINTS = (
    ("deepseek", "deepseek", 'auth = { env = ["DEEPSEEK_API_KEY"] }'),
    ("openai", "openai", 'dialect = "openai-responses"\npath = "/responses"'),
    ("anthropic", "anthropic", 'dialect = "anthropic"\npath = "/messages"'),
    ("gemini", "gemini", 'dialect = "gemini"\npath = "/models/{model}:generateContent"\nmodel_in_body = false'),
)


def run(python: str, names: Sequence[str], referee: Referee, directory: Path) -> str:
    """What they print; their log is made in ``directory``. Raises ``RuntimeError`` with what a failed one said."""
    server = referee.url.partition("://")[2]
    rows = (
        f'[[endpoint]]\nid = "{id}"\nname = "{id}"\nbase_url = "{referee.base_url(host)}"\n'
        f'hosts = ["{server}/{host}"]\nsource = "here"\n{more}\n'
        for id, host, more in _ENDPOINTS
    )
    (directory / "rules.toml").write_text("\n".join(rows), encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT") if name in os.environ}
    keys = {f"{name}_API_KEY": KEY for name in ("DEEPSEEK", "OPENAI", "ANTHROPIC", "GOOGLE")}
    addresses = {
        "DEEPSEEK_BASE_URL": referee.base_url("deepseek"),
        "OPENAI_BASE_URL": referee.base_url("openai"),
        "ANTHROPIC_BASE_URL": referee.base_url("anthropic").removesuffix("/v1"),
        "GOOGLE_GEMINI_BASE_URL": referee.base_url("gemini").removesuffix("/v1beta"),
    }
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "src", ROOT / "referee" / "src")))
    paths = os.pathsep.join((paths, str(_installed(directory))))
    ours = {"THINKBACK_CONFIG_DIR": str(directory), "PYTHONPATH": paths, "LLM_USER_PATH": str(directory)}
    ours |= {"THINKBACK_DB": str(directory / "chats.db"), "THINKBACK_USAGE_LOG": str(directory / "usage.jsonl")}
    command = [python, "-m", "bench.examples", *names]
    done = subprocess.run(
        command, cwd=directory, env={**kept, **keys, **addresses, **ours}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def _installed(directory: Path) -> Path:
    """Where programs find the plugins that thinkback has for them, as if it were installed."""
    told = directory / "site" / "thinkback-0.dist-info"
    told.mkdir(parents=True, exist_ok=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: thinkback\nVersion: 0\n", encoding="utf-8")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    lines = [line for name, rows in groups.items() for line in (f"[{name}]", *(f"{key} = {rows[key]}" for key in rows))]
    (told / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return told.parent


if __name__ == "__main__":
    for name in sys.argv[1:]:
        runpy.run_path(str(PLACE / f"{name}.py"), run_name="__main__")
