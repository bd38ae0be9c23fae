"""Commands: output, time limits, interruption, and what becomes of the processes."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from tests.drive.workspace.calls import failure, told
from thinkback.drive.stopping import Stop
from thinkback.drive.workspace.paths import workspace_at
from thinkback.drive.workspace.shell import Commands, environment


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    """The commands of a workspace."""
    return Commands(workspace_at(tmp_path), 1000, environment(os.environ))


def ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be collected, within ten seconds."""
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        threading.Event().wait(0.02)
    return False


def test_a_command_runs_in_the_workspace(tmp_path: Path, commands: Commands) -> None:
    """Both of its streams, in order; its exit code where it failed."""
    assert (f"{tmp_path.resolve()}\nout\nerr", False) == told(commands.shell, command="pwd; echo out; echo err >&2")
    assert ("no\n[exit code 3]", True) == told(commands.shell, command="echo no; exit 3")
    assert ("[no output]", False) == told(commands.shell, command="true")
    assert ("[ended by signal 9]", True) == told(commands.shell, command="kill -9 $$")


def test_a_command_gets_no_input(commands: Commands) -> None:
    """One that asks does not wait for ever."""
    assert ("[exit code 1]", True) == told(commands.shell, command="read answer", timeout=20)


def test_bytes_that_are_no_text_are_replaced(commands: Commands) -> None:
    """And a NUL is no command."""
    assert ("a\ufffdb", False) == told(commands.shell, command=r"printf 'a\377b'")
    assert "NUL" in failure(commands.shell, command="a\0b")


def test_much_output_is_cut_in_its_middle(commands: Commands) -> None:
    """While it comes: neither memory nor the context holds it."""
    text, is_error = told(commands.shell, command="echo begin; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert not is_error
    assert text.startswith("begin\nxxx")
    assert text.endswith("xxx\nend")
    assert "characters left out, about" in text
    assert len(text) < 4 * 1000 + 200


def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path: Path, commands: Commands) -> None:
    """Also one that ignores signals, one in the background, and one that left the process group."""
    script = """
        trap '' TERM
        sleep 300 & echo $! >> pids
        setsid sleep 300 & echo $! >> pids
        (trap '' TERM; sleep 300; sleep 300) & echo $! >> pids
        echo begun
        sleep 300
    """
    text, is_error = told(commands.shell, command=script, timeout=1)
    assert is_error
    assert text.startswith("begun\n[ended: it took longer than 1 seconds; give a longer timeout")
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert [True] * 3 == [ended(pid) for pid in pids]


def test_what_is_left_in_the_background_ends_with_the_command(tmp_path: Path, commands: Commands) -> None:
    """It does not hold the answer up either, though it holds the pipe."""
    began = time.monotonic()
    assert ("done", False) == told(commands.shell, command="sleep 300 & echo $! > pid; echo done")
    assert time.monotonic() - began < 30
    assert ended(int((tmp_path / "pid").read_text()))


def test_what_left_the_group_ends_with_the_command_too(tmp_path: Path, commands: Commands) -> None:
    """Though it holds nothing of the command, and starts others."""
    left = "setsid sh -c 'sleep 300 & echo $! > pids; echo $$ >> pids; touch made; wait' >/dev/null 2>&1 &"
    script = f"{left} while [ ! -e made ]; do :; done"
    told(commands.shell, command=script, timeout=30)
    assert {True} == {ended(int(pid)) for pid in (tmp_path / "pids").read_text().split()}


def test_a_background_that_never_stops_talking_holds_nothing_up(commands: Commands) -> None:
    """The answer is there when the command is over, with what was said by then."""
    text, is_error = told(commands.shell, command="echo begun; yes & sleep 0.1", timeout=60)
    assert not is_error
    assert text.startswith("begun")


def test_a_command_that_closes_its_output_is_waited_for(tmp_path: Path, commands: Commands) -> None:
    """The end of the output is not the end of the command."""
    told(commands.shell, command="exec >&- 2>&-; sleep 0.3; touch made")
    assert (tmp_path / "made").exists()


def test_an_interrupted_turn_ends_its_command(tmp_path: Path, commands: Commands) -> None:
    """With what it had said; the turn waits for that."""
    stop = Stop()
    found: list[tuple[str, bool]] = []
    script = "echo begun; echo $$ > pid; sleep 300 & wait"
    thread = threading.Thread(target=lambda: found.append(told(commands.shell, stop, command=script)))
    thread.start()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        threading.Event().wait(0.01)
    stop.set()
    assert not stop.is_awaited
    thread.join(10)
    assert [("begun\n[ended: the turn was interrupted]", True)] == found
    assert ended(int((tmp_path / "pid").read_text()))


SECRETS = """
    OPENAI_API_KEY AWS_SECRET_ACCESS_KEY GITHUB_TOKEN PGPASSWORD DATABASE_URL SSHPASS PGPASS LDAP_BINDPW NPM_AUTH JWT
    SLACK_WEBHOOK KEYBOARD VIRTUAL_ENV JAVA_HOME HTTPS_PROXY SSH_AUTH_SOCK BASH_FUNC_x%% BASH_ENV LD_PRELOAD XPATH
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_commands_get_no_variable_that_nobody_named(name: str) -> None:
    """What it is called says nothing of what it holds; a person who names it says that it may be there."""
    assert name not in environment({name: "value"})
    assert "value" == environment({name: "value"}, [name])[name]


def test_commands_get_what_programs_need() -> None:
    """Where things are, who it is, the language."""
    given = {"PATH": "/bin", "PWD": "/x", "HOME": "/home/me", "LANG": "C", "LC_ALL": "C", "TMPDIR": "/tmp", "TZ": "UTC"}
    assert given == {name: environment(given)[name] for name in given}


LACKING = [
    ("echo $JAVA_HOME; exit 1", ["JAVA_HOME"]),
    ("echo 'java: command not found'; exit 127", ["JAVA_HOME"]),
    ("echo \"No module named 'x'\"; exit 1", ["VIRTUAL_ENV"]),
    ("echo 'git@host: Permission denied (publickey).'; exit 128", ["SSH_AUTH_SOCK"]),
    ("echo 'curl: (6) Could not resolve host: x'; exit 6", ["HTTPS_PROXY", "NO_PROXY"]),
    ("echo something else; exit 1", []),
    ("echo $JAVA_HOME", []),
]


@pytest.mark.parametrize(("command", "names"), LACKING)
def test_a_command_that_fails_for_want_of_a_variable_is_told_its_name(
    tmp_path: Path, command: str, names: list[str]
) -> None:
    """Only of those that are set here; a command that succeeds is told nothing."""
    withheld = {"JAVA_HOME", "VIRTUAL_ENV", "SSH_AUTH_SOCK", "HTTPS_PROXY", "NO_PROXY"}
    text, _ = told(Commands(workspace_at(tmp_path), 1000, environment(os.environ), withheld).shell, command=command)
    assert bool(names) == ("shell.environment" in text)
    assert all(name in text.splitlines()[-1] for name in names)


def test_a_command_does_not_see_our_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even by asking for everything."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-hidden")
    commands = Commands(workspace_at(tmp_path), 1000, environment(os.environ))
    assert "sk-hidden" not in told(commands.shell, command="env; export -p")[0]


def test_a_workspace_names_no_programs(tmp_path: Path) -> None:
    """Whatever the path of the person's own shell says."""
    fake = tmp_path / "ls"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    commands = Commands(workspace_at(tmp_path), 1000, environment({"PATH": f".::bin:{os.environ['PATH']}"}))
    assert ("ls", False) == told(commands.shell, command="ls")


def test_a_repository_starts_nothing_when_it_is_looked_at(tmp_path: Path, commands: Commands) -> None:
    """By the hook of its index, the program that watches files, or in the place of a .git."""
    hooks = "printf '#!/bin/sh\\ntouch ran\\n' > ran.sh; chmod +x ran.sh; cp ran.sh .git/hooks/post-index-change"
    told(commands.shell, command=f"git init -q; echo a > a; git add a; {hooks}; git config core.fsmonitor ./ran.sh")
    (tmp_path / "ran").unlink(missing_ok=True)
    os.utime(tmp_path / "a", (1, 1))
    assert not told(commands.shell, command="git status")[1]
    assert not (tmp_path / "ran").exists()
    told(commands.shell, command="git init -q --bare other; mv .git gone; mv other/* .")
    assert (
        "not a git repository" in told(commands.shell, command="git log")[0]
        or told(commands.shell, command="git log")[1]
    )


def test_files_are_searched(tmp_path: Path, commands: Commands) -> None:
    """By regular expression and by name; binary files and the history of git are left out."""
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x").write_text("needle")
    (tmp_path / "src" / "a.py").write_text("hay\nneedle 1\n")
    (tmp_path / "b.txt").write_text("needle 2\n")
    (tmp_path / "c.bin").write_bytes(b"\0needle")
    assert ("b.txt:1:needle 2\nsrc/a.py:2:needle 1", False) == (
        "\n".join(sorted(told(commands.search, pattern="needle [0-9]+")[0].split("\n"))),
        False,
    )
    assert ("src/a.py:2:needle 1", False) == told(commands.search, pattern="needle", glob="*.py")
    assert ("src/a.py:2:needle 1", False) == told(commands.search, pattern="needle", path="src")
    os.mkfifo(tmp_path / "pipe")
    assert ("[nothing matches 'needle']", False) == told(commands.search, pattern="needle", path="pipe")
    assert ("[nothing matches '-x']", False) == told(commands.search, pattern="-x")
    assert "none does not exist" in failure(commands.search, pattern="x", path="none")
    assert "leads out of" in failure(commands.search, pattern="x", path="..")
    assert "the search failed" in failure(commands.search, pattern="(")


def test_a_search_that_could_not_start_is_told(tmp_path: Path) -> None:
    """A machine without the program."""
    commands = Commands(workspace_at(tmp_path), 1000, {"PATH": "/nowhere"})
    assert failure(commands.search, pattern="x").startswith("grep could not be started: ")
