"""Tables for notebooks: what stands in a cell is text."""

from __future__ import annotations

from thinkback.model.blocks import Carrier, ThinkingBlock
from thinkback.model.commits import Commit
from thinkback.model.tables import html_table, markdown_table
from thinkback.model.target import Decision, Decisions


def test_cells_are_text() -> None:
    """A tag, a bar, a link and a picture stay what they are."""
    rows = [("<script>alert(1)</script>", "a|b\n![x](http://e.example/x.png)")]
    page = html_table(("one", "two"), rows)
    assert ("<script>" in page, "&lt;script&gt;alert(1)&lt;/script&gt;" in page) == (False, True)
    assert (
        "| one | two |\n| --- | --- |\n"
        "| \\<script\\>alert(1)\\</script\\> | a\\|b \\!\\[x\\](http://e.example/x.png) |\n"
    ) == markdown_table(("one", "two"), rows)


def test_commits_and_decisions_show_what_people_read() -> None:
    """In a line, and as tables; no opaque value, and of a record that says nothing its kind."""
    sealed = ThinkingBlock("why <b>", signature="opaque", carriers=(Carrier("encrypted", "opaque"),))
    commit = Commit("abcdef0123", (), 3, "reasoning", sealed, b"", "", 0)
    assert "<Commit abcdef01: reasoning, seq 3>" == repr(commit)
    assert "| abcdef01 | reasoning | 3 | why \\<b\\> |\n" in commit._repr_markdown_()
    assert ("why &lt;b&gt;" in commit._repr_html_(), "opaque" in commit._repr_html_()) == (True, False)
    decisions = Decisions([Decision("drop", "reasoning", "abcdef0123", "rule", "because <i>")])
    assert "reasoning abcdef01 not sent: because <i>" == str(decisions[0])
    assert "[<Decision: reasoning abcdef01 not sent: because <i>>]" == repr(decisions)
    stand_in = Decision("placeholder", "reasoning", "", "rule", "why", 3)
    assert "message 3: a stand-in for reasoning sent (placeholder): why" == str(stand_in)
    assert "<td" in decisions._repr_html_()
    assert "| drop | reasoning | abcdef01 | rule | because \\<i\\> |  |\n" in decisions._repr_markdown_()
