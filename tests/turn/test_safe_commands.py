"""Command lines that need nobody's word, and those that do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkback.turn.safe_commands import is_safe

SAFE = [
    "ls",
    "ls -la src",
    "cat README.md",
    "cat 'a file.txt' \"b c\"",
    "rg -n --hidden pattern src",
    "grep -rn 'def main' src",
    "find . -name '*.py' -type f",
    "find . ! -name x",
    "ls src/*.py",
    "ls a*",
    "head -n 20 src/main.py",
    "sort -u names.txt",
    "tree -L 2",
    "diff -u a b",
    "git status",
    "git log --oneline -n 5",
    "git diff HEAD -- src/a.py",
    "git show HEAD:src/a.py",
    "git branch -a",
    "git branch",
    "git remote -v",
    "git tag --list",
    "git grep -n needle",
    "echo 50%",
    "cat -- -",
    "echo ''",
]
UNSAFE = [
    "",
    "  ",
    "rm -rf .",
    "ls; rm a",
    "ls && rm a",
    "ls | sh",
    "ls > a",
    "cat < a",
    "echo $HOME",
    "echo $(rm a)",
    "echo `rm a`",
    "ls\nrm a",
    "ls \\\nrm",
    "ls\x00",
    "cat {a,b}",
    "(ls)",
    "FOO=bar ls",
    "./ls",
    "/bin/ls",
    "cat 'a",
    'cat "a',
    "cat /etc/passwd",
    "cat '/etc/passwd'",
    "cat ~/.ssh/id",
    "cat ../secret",
    "cat a/../../secret",
    "cat .*",
    "cat a/.?",
    "cat a/'.'*/'.'*/etc/passwd",
    'cat a/"."?',
    "grep --file=/etc/passwd x",
    "grep -f/etc/passwd x",
    "grep --file=~/x y",
    "cat C:secret",
    "sort *",
    "sort -*",
    "sort ''*",
    "sort -o out in",
    "sort -uo out in",
    "sort --output=out in",
    "sort --outp=out in",
    "sort --compress-program=evil in",
    'sort -"o" out in',
    "rg --pre=evil x",
    "rg --pre evil x",
    "tree -o out",
    "tree -R",
    "file -C",
    "sort --files0-from=names",
    "wc --files0=names",
    "du --files0-from names",
    "file -f names",
    "git log --show-signature",
    "git log --format=%GK",
    "git describe --dirty",
    "sha256sum -c names",
    "find -files0-from names",
    "find . -delete",
    "find . -exec rm x",
    "find . -execdir rm x",
    "find . -ok rm x",
    "find . -fprint out",
    "find . -fls out",
    "git",
    "git push",
    "git commit -m x",
    "git -c core.pager=evil log",
    "git -C .. log",
    "git branch new",
    "git branch -D old",
    "git tag v1",
    "git remote add a b",
    "git diff --output=out",
    "git diff --outpu out",
    "git diff --ext-diff",
    "git log --textconv",
    "git grep -Oevil x",
    "git grep --open-files-in-pager=evil x",
    "git diff --no-index a /etc/passwd",
    "python x.py",
    "uniq a b",
    "sed -i s/a/b/ x",
    "env",
]


@pytest.mark.parametrize("command", SAFE)
def test_what_only_reads_needs_nobodys_word(command: str) -> None:
    """Programs of the list, with options that do nothing else, inside the directory."""
    assert is_safe(command)


@pytest.mark.parametrize("command", UNSAFE)
def test_what_may_do_more_is_not_safe(command: str) -> None:
    """It writes, runs something, leaves the directory, or is not known."""
    assert not is_safe(command)


@given(st.text(max_size=30), st.sampled_from(list(";&|<>$`\\(){}\n\r")), st.text(max_size=30))
def test_a_character_with_a_meaning_of_its_own_is_never_safe(before: str, character: str, after: str) -> None:
    """Wherever it stands, quoted or not."""
    assert not is_safe(f"ls {before}{character}{after}")


@given(st.text(max_size=40))
def test_any_text_is_judged(text: str) -> None:
    """And what is safe begins with a word of the list."""
    if is_safe(f"ls {text}"):
        assert ".." not in text
    assert not is_safe(f"rm {text}")
