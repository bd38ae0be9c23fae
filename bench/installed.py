"""``python bench/installed.py thinkback[gateway]``: how many bytes and packages an environment has for a requirement.

Run by that environment's interpreter with nothing of this project in reach but what is installed. Counted is what the
requirement brings and nothing else that is there: the files that each distribution lists, without byte code; of
one that is installed from its source, the package.
"""

from __future__ import annotations

import sys
from importlib.metadata import Distribution, distribution
from importlib.util import find_spec
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name


def closure(wanted: Requirement) -> dict[str, Distribution]:
    """The distributions by name, the one that is named first."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [wanted]
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        for extra in sorted({"", *asked.extras} - {extra for each, extra in seen if each == name}):
            seen.add((name, extra))
            found.setdefault(name, distribution(name))
            for text in found[name].requires or ():
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    waiting.append(needed)
    return found


def size(found: Distribution) -> int:
    """Bytes of its files on this machine."""
    listed = [Path(str(file.locate())) for file in found.files or ()]
    if '"editable"' in (found.read_text("direct_url.json") or ""):
        spec = find_spec(found.metadata["Name"].replace("-", "_"))
        if spec is not None and spec.submodule_search_locations:
            listed = [file for place in spec.submodule_search_locations for file in Path(place).rglob("*")]
    return sum(file.stat().st_size for file in listed if file.suffix != ".pyc" and file.is_file())


if __name__ == "__main__":
    every = closure(Requirement(sys.argv[1]))
    print(sum(size(each) for each in every.values()), len(every))
