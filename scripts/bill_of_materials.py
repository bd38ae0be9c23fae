"""Write the SBOM (CycloneDX) and the third-party licences of the deployed packages, for `make release-check`.

The SBOM comes from cyclonedx-py, which reads an environment with the hashed requirements of every deployed extra. The
licences are those that the SBOM names and the texts that the packages install, behind NOTICE, which names the data that
comes from elsewhere.
"""

from __future__ import annotations

import json
import re
import subprocess
import venv
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DEPLOYED = ("gateway", "postgres", "viewer")
TOOL = ROOT / ".venv-release" / "bin" / "cyclonedx-py"
_LICENCE_FILE = re.compile(r"\.dist-info/(.*/)?(LICEN[CS]E|COPYING|NOTICE)[^/]*$", re.IGNORECASE)


def write_bill(place: Path, out: Path) -> list[str]:
    """Write ``sbom.cdx.json`` and ``THIRD-PARTY-LICENSES.txt`` to ``out``. Returns the packages without a licence."""
    venv.create(place / "deployed", with_pip=True)
    python = str(place / "deployed" / "bin" / "python")
    pins = [part for extra in DEPLOYED for part in ("--requirement", str(ROOT / "requirements" / f"{extra}.txt"))]
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "-qq"]
    subprocess.run([*pip, "install", "--require-hashes", *pins], check=True)
    subprocess.run([*pip, "uninstall", "--yes", "setuptools", "pip"], check=True)
    out.mkdir(exist_ok=True)
    bill = out / "sbom.cdx.json"
    options = ["--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml"), "--output-file", str(bill)]
    subprocess.run([str(TOOL), "environment", *options, python], check=True)
    components = json.loads(bill.read_text(encoding="utf-8"))["components"]
    (packages,) = (place / "deployed" / "lib").glob("python*/site-packages")
    texts = {each.name.lower(): licence_texts(each) for each in distributions(path=[str(packages)])}
    parts = [(ROOT / "NOTICE").read_text(encoding="utf-8")]
    parts += [render_component(each, texts[each["name"].lower()]) for each in sorted(components, key=_sort_key)]
    (out / "THIRD-PARTY-LICENSES.txt").write_text("\n".join(parts), encoding="utf-8")
    return [f"{each['name']} {each['version']}: no licence is known" for each in components if not each.get("licenses")]


def licence_texts(distribution: Distribution) -> list[str]:
    """The licence and notice files that a package installs, as text."""
    files = [file for file in distribution.files or () if _LICENCE_FILE.search(str(file))]
    return [file.read_text(encoding="utf-8") for file in sorted(files)]


def render_component(component: Mapping[str, Any], texts: Sequence[str]) -> str:
    """One package as text: its name, version and licences, then the licence texts that it brings."""
    entries = component.get("licenses", ())
    named = {entry.get("expression") or entry["license"].get("id") or entry["license"]["name"] for entry in entries}
    title = f"{component['name']} {component['version']}: {', '.join(sorted(named))}"
    return "\n".join([title, "-" * len(title), "", *texts])


def _sort_key(component: Mapping[str, Any]) -> str:
    name: str = component["name"].lower()
    return name
