"""``gc`` and ``backup`` from the command line."""

from __future__ import annotations

import thinkback
from tests.cli.command import Command
from thinkback.log.seal import seal
from thinkback.model.commits import Draft, Head, Message, Step


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


def test_what_is_older_than_the_retention_is_erased(talked: Command) -> None:
    """Nothing while nothing is that old, and nothing where all of it is: the clock may be wrong."""
    assert 0 == talked("settings", "set", "log.retention", "30").code
    would = talked("gc", "--dry-run", "--json").json
    assert (0, []) == (would["erased"], would["busy"])
    with thinkback.open(talked.db) as store:
        commits = seal(Step("old", (Draft("user", Message("zebra")),), 5), Head())
        store.log.create_session("old", "old", 5)
        store.log.append("old", "old", commits, Head())
        found = store.find("old").head
    assert 1 == talked("gc", "--dry-run", "--json").json["erased"]
    assert 0 == talked("search", "zebra").code
    assert "1 commit older than 30 days erased" in talked("gc").out
    assert [] == talked("search", "zebra", "--json").json
    assert "Oslo" in talked("log", "talk").out
    talked("delete", "talk", "--yes")
    assert 0 == talked("gc").code
    with thinkback.open(talked.db) as store:
        store.log.append("old", "more", seal(Step("more", (Draft("user", Message("more")),), 6), found), found)
    refused = talked("gc")
    assert (1, True) == (refused.code, "the clock of this machine may be wrong" in refused.err)
