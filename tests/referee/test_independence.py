"""The referee judges with its own code."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import thinkback_referee


def test_it_imports_nothing_but_itself_and_the_standard_library() -> None:
    """A judge that shares the accused's code proves nothing; pytest is for its plugin alone."""
    foreign = []
    expected = [("pytest_plugin.py", "pytest")]
    top = Path(str(thinkback_referee.__file__)).parent
    for path in top.rglob("*.py"):
        depth = len(path.relative_to(top).parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not 1 <= node.level <= depth:
                names = [node.module or "the parent package"]
            foreign += [(path.name, name) for name in names if name.split(".")[0] not in sys.stdlib_module_names]
    assert expected == foreign
