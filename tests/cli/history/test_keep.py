"""``gc`` and ``backup`` from the command line."""

from __future__ import annotations

import thinkback
from tests.cli.command import Command


def test_what_no_branch_reaches_is_collected(talked: Command) -> None:
    """Not before it is old enough, and not in a dry run."""
    commits = talked("log", "--json").json
    assert 0 == talked("reset", commits[1]["hash"]).code
    assert "0 commits" in talked("gc").out
    would = talked("gc", "--older-than", "0", "--dry-run", "--json").json
    assert (len(commits) - 2, True) == (would["commits"], would["dry_run"])
    gone = talked("gc", "--older-than", "0", "--json").json
    assert (would["commits"], 0) == (gone["commits"], talked("fsck").code)
    assert 2 == talked("show", commits[-1]["hash"]).code
    assert 2 == talked("gc", "--older-than", "-1").code


def test_a_copy_is_whole(talked: Command) -> None:
    """It opens as a log of its own; a file that is there is never written over."""
    copy = talked.place / "copy.db"
    assert 0 == talked("backup", str(copy)).code
    with thinkback.open(copy) as store, thinkback.open(talked.db) as original:
        assert (original.commits("talk"), []) == (store.commits("talk"), store.fsck())
    refused = talked("backup", str(copy), "--json")
    assert (2, True) == (refused.code, "copy.db" in refused.json["error"]["message"])
