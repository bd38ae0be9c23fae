"""``connect``: what points an agent at the gateway is shown, written and taken back, and nothing else is touched."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.cli.conftest import Inside
from tests.privileges import NOBODY, unprivileged
from thinkback.cli.connect import files
from thinkback.cli.connect.agents import AGENTS, BY_HAND
from thinkback.errors import SettingError

KEY = "tb-0123456789abcdefghij-KEY4"
FOREIGN = "sk-of-somebody-else-0123456789"
DIFFS = Path(__file__).parent / "diffs"
BEFORE = {
    "claude-code": {
        ".claude/settings.json": f'{{\n  "env": {{\n    "GITHUB_TOKEN": "{FOREIGN}"\n  }},\n'
        '  "permissions": {"allow": []}\n}\n'
    },
    "codex": {
        ".codex/config.toml": '# mine\nmodel = "gpt-6" # best\n\n[mcp_servers.docs]\n'
        f'env = {{ API_KEY = "{FOREIGN}" }}\n\n'
        "[[hooks]] # one\nx = 1\n\n[profiles.fast]\nmodel = 'gpt-6-mini'"
    },
    "opencode": {".config/opencode/opencode.jsonc": '{\r\n\t// a comment\r\n\t"theme": "dark", // kept\r\n}\r\n'},
    "pi": {".pi/agent/settings.json": '{"defaultProvider": "anthropic", "theme": "dark"}'},
    "gemini-cli": {
        ".gemini/settings.json": '{\n  "security": {\n    "auth": {\n'
        '      "selectedType": "oauth-personal" // Google\n    }\n  }\n}\n',
        ".gemini/.env": f"# keys\nexport GEMINI_API_KEY='{FOREIGN}' # old\n",
    },
    "qwen-code": {".qwen/settings.json": ""},
    "aider": {
        ".aider.conf.yml": f"# aider\nopenai-api-key: {FOREIGN}\nread:\n  - a.md # model: x\nmodel: gpt-6 # best\n"
    },
    "crewai": {},
}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, inside: Inside) -> None:
    """A machine on which nothing but ``inside`` says where files are."""
    named = {place.variable for row in AGENTS.values() for file in row.files for place in file.places}
    beside = {name for row in AGENTS.values() for name in row.beside}
    for name in {*named, *beside, "THINKBACK_KEY", "XDG_STATE_HOME", "GIT_WORK_TREE"}:
        monkeypatch.delenv(name, raising=False)
    inside.environment["THINKBACK_KEY"] = KEY
    monkeypatch.chdir(inside.place)


def laid(place: Path, agent: str) -> dict[Path, bytes]:
    """The files of ``agent`` as they are before; their bytes."""
    made = {place / name: text.encode() for name, text in BEFORE[agent].items()}
    for path, data in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o640)
    return made


def files_in(place: Path) -> dict[Path, bytes]:
    """Every file of an agent; what thinkback keeps for itself aside."""
    own = (place / ".local", place / "config")
    return {
        path: path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and not any(path.is_relative_to(one) for one in own)
    }


@pytest.mark.parametrize("agent", AGENTS)
def test_the_settings_of_an_agent_are_shown_written_and_taken_back(inside: Inside, agent: str) -> None:
    """The diff is the one on file; writing twice is writing once; afterwards every byte and mode is as it was."""
    before = laid(inside.place, agent)

    shown = inside("connect", agent, "--model", "fast")
    assert (DIFFS / f"{agent}.diff").read_text() == shown.out.replace(str(inside.place), "~")
    assert (0, before) == (shown.code, files_in(inside.place))
    written = inside("connect", agent, "--model", "fast", "--write")
    after = files_in(inside.place)
    assert len(AGENTS[agent].files) == len(after)
    assert {0o600} == {path.stat().st_mode & 0o777 for path in after}
    again = inside("connect", agent, "--model", "fast", "--write")
    assert after == files_in(inside.place)
    assert all(f"nothing changes: {path}" in again.out for path in after)
    undone = inside("connect", agent, "--undo")
    assert (0, before) == (undone.code, files_in(inside.place))
    assert {0o640} >= {path.stat().st_mode & 0o777 for path in before}
    for outcome in (shown, written, again, undone):
        assert KEY not in outcome.out + outcome.err
        assert FOREIGN not in outcome.out + outcome.err
    assert "nothing of" in inside("connect", agent, "--undo").out


def test_what_the_agent_wrote_anew_since_is_taken_back_by_values(inside: Inside) -> None:
    """The file is of another form and has more in it: ours goes, the rest stays, and what was replaced comes back."""
    path = inside.place / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{"env": {"ANTHROPIC_AUTH_TOKEN": "old"}, "model": "opus"}')
    inside("connect", "claude-code", "--write")
    data = json.loads(path.read_text())
    path.write_text(json.dumps({"theme": "dark", **data}, indent=4, sort_keys=True))

    assert 0 == inside("connect", "claude-code", "--undo").code
    assert {"theme": "dark", "env": {"ANTHROPIC_AUTH_TOKEN": "old"}, "model": "opus"} == json.loads(path.read_text())


def test_a_line_of_ours_that_was_changed_is_not_taken_back(inside: Inside) -> None:
    """The refusal shows what was written and what is there, no key; put back, it goes."""
    path = inside.place / ".codex/config.toml"
    inside("connect", "codex", "--model", "fast", "--write")
    ours = path.read_text()
    path.write_text(ours.replace('"fast"', '"slow"').replace(KEY, FOREIGN))

    refused = inside("connect", "codex", "--undo")
    assert 2 == refused.code
    assert "-model = fast\n  +model = slow" in refused.err
    assert "experimental_bearer_token = (another key)" in refused.err
    assert FOREIGN not in refused.err
    assert '"slow"' in path.read_text()
    path.write_text(f"# mine\n{ours}")
    assert 0 == inside("connect", "codex", "--undo").code
    assert "# mine\n" == path.read_text()


def test_edits_between_two_writes_are_not_lost(inside: Inside) -> None:
    """Another gateway and no model any more: ours is changed; undo brings back the rest, edits and all."""
    path = inside.place / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('model = "gpt-6"\n')
    inside("connect", "codex", "--model", "fast", "--write")
    path.write_text(f"# later\n{path.read_text()}")
    inside("connect", "codex", "--gateway", "http://127.0.0.1:9999/v1/", "--write")

    text = path.read_text()
    assert ('base_url = "http://127.0.0.1:9999/v1"' in text, 'model = "gpt-6"' in text) == (True, True)
    assert "8484" not in text
    assert 0 == inside("connect", "codex", "--undo").code
    assert '# later\nmodel = "gpt-6"\n' == path.read_text()


def test_a_file_that_went_meanwhile_is_made_and_removed(inside: Inside) -> None:
    """Undo does not invent one; connected again, it is ours alone and goes again."""
    path = inside.place / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{"model": "opus"}')
    inside("connect", "claude-code", "--write")
    path.unlink()
    refused = inside("connect", "claude-code", "--undo")
    assert (2, False) == (refused.code, path.exists())
    assert "is gone" in refused.err
    inside("connect", "claude-code", "--write")
    assert (0, False) == (inside("connect", "claude-code", "--undo").code, path.exists())


@pytest.mark.parametrize(
    ("agent", "name", "data", "said"),
    [
        ("claude-code", ".claude/settings.json", b'{\n "env": {\n', "line 3: the text ends too early"),
        ("claude-code", ".claude/settings.json", b'{"a": 1\n "b": 2}', "line 2: a comma or } is expected here"),
        (
            "claude-code",
            ".claude/settings.json",
            b'{"env": {},\n"env": {}}',
            "line 2: the key env stands here and on line 1",
        ),
        ("claude-code", ".claude/settings.json", b'{"env": []}', "line 1: an object is expected here"),
        ("claude-code", ".claude/settings.json", b"{}\n{}", "line 2: something stands behind the end"),
        ("claude-code", ".claude/settings.json", b"[" * 9999, "nested more than 100 deep"),
        ("claude-code", ".claude/settings.json", b"{ /* \n", "line 1: a comment does not end"),
        ("claude-code", ".claude/settings.json", b"{\n\xff}", "line 2: it is not UTF-8"),
        ("codex", ".codex/config.toml", b'a = 1\nmodel = "x', "line 2"),
        (
            "codex",
            ".codex/config.toml",
            b"\nmodel_providers = { a = {} }",
            "line 2: model_providers is no table with lines",
        ),
        ("codex", ".codex/config.toml", b"[[model_providers]]\na = 1", "this form cannot be edited"),
        ("aider", ".aider.conf.yml", b"a: 1\n- model\n", "line 2: a key and a colon are expected"),
        ("aider", ".aider.conf.yml", b"model: |\n  x\n", "line 1: model is written in a form"),
        ("aider", ".aider.conf.yml", b"model: a\nmodel: b\n", "line 2: the key model stands here and on line 1"),
        ("crewai", ".env", b"A=1\nMODEL='x\n", "line 2: a quote does not end"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(inside: Inside, agent: str, name: str, data: bytes, said: str) -> None:
    """Nothing is written, neither there nor to be taken back."""
    path = inside.place / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)

    refused = inside("connect", agent, "--model", "fast", "--write")
    assert (2, data) == (refused.code, path.read_bytes())
    assert said in refused.err
    assert not list(inside.place.glob(".local/**/*.json"))


def test_nothing_is_written_where_one_of_two_files_is_damaged(inside: Inside) -> None:
    """All files are read before the first is written."""
    path = inside.place / ".pi/agent/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert 2 == inside("connect", "pi", "--model", "fast", "--write").code
    assert {path: b"{"} == files_in(inside.place)


@pytest.mark.parametrize("what", ["file", "dangling", "directory", "fifo", "taken"])
def test_what_is_no_file_of_its_own_is_refused(inside: Inside, what: str) -> None:
    """A link, of the file or of its directory, a pipe and a directory: not followed, not replaced, not waited for."""
    real, folder = inside.place / "dotfiles", inside.place / ".codex"
    real.mkdir()
    (real / "config.toml").write_text("a = 1\n")
    if what == "directory":
        folder.symlink_to(real)
    else:
        folder.mkdir()
    match what:
        case "file":
            (folder / "config.toml").symlink_to(real / "config.toml")
        case "dangling":
            (folder / "config.toml").symlink_to(inside.place / "nowhere")
        case "fifo":
            os.mkfifo(folder / "config.toml")
        case "taken":
            (folder / "config.toml").mkdir()

    refused = inside("connect", "codex", "--write")
    assert 2 == refused.code
    assert ("config.toml is no file" if what in ("fifo", "taken") else "symbolic link") in refused.err
    assert "a = 1\n" == (real / "config.toml").read_text()
    assert not (inside.place / "nowhere").exists()


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    """What an agent wrote in between is not lost; a link that was put there in between is not followed."""
    path = tmp_path / "config.toml"
    path.write_bytes(b"newer")
    with pytest.raises(SettingError, match="changed meanwhile"):
        files.replace(path, b"ours", 0o600, b"older")
    assert b"newer" == path.read_bytes()
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(SettingError, match="symbolic link"):
        files.replace(tmp_path / "link", b"ours", 0o600, b"newer")
    assert [b"newer"] == [one.read_bytes() for one in tmp_path.iterdir() if not one.is_symlink()]


def test_what_may_not_be_written_is_named_whole(tmp_path: Path) -> None:
    """A directory without the right to write: the error has the path, and nothing is left behind."""
    path = tmp_path / "config.toml"
    tmp_path.chmod(0o500)
    with unprivileged(), pytest.raises(SettingError, match=rf"{path} cannot be read or written \(Permission denied\)"):
        files.replace(path, b"ours", 0o600, None)
    tmp_path.chmod(0o700)
    assert [] == list(tmp_path.iterdir())


def test_a_provider_of_the_same_name_is_not_taken_over(inside: Inside) -> None:
    """A person's own ``model_providers.thinkback`` stays as it is."""
    path = inside.place / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('[model_providers.thinkback]\nbase_url = "http://example/v1"\n')
    refused = inside("connect", "codex", "--write")
    assert 2 == refused.code
    assert "model_providers.thinkback already" in refused.err
    assert "example" in path.read_text()


@pytest.mark.parametrize("mark", ["directory", "worktree", "variable"])
@pytest.mark.parametrize("agent", ["claude-code", "codex", "opencode", "pi", "gemini-cli", "crewai"])
def test_no_key_is_written_into_a_repository(inside: Inside, agent: str, mark: str) -> None:
    """A home directory under git, a work tree, and one that only the environment names; and it is said how to go on."""
    match mark:
        case "directory":
            (inside.place / ".git").mkdir()
        case "worktree":
            (inside.place / ".git").write_text("gitdir: elsewhere\n")
        case "variable":
            inside.environment["GIT_WORK_TREE"] = str(inside.place)
    written = inside("connect", agent, "--model", "fast", "--write")

    variable = AGENTS[agent].variable or "THINKBACK_KEY"
    assert 0 == written.code
    assert f"with the key in the variable {variable}" in written.err
    everything = b"".join(path.read_bytes() for path in inside.place.rglob("*") if path.is_file())
    assert (False, True) == (KEY.encode() in everything, b"8484" in everything)
    if not AGENTS[agent].variable:
        assert b"THINKBACK_KEY" in b"".join(files_in(inside.place).values())


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (("codex", "--undo", "--write"), {}, "--undo takes no other option"),
        (("opencode",), {}, "needs --model"),
        (("crewai", "--model", "deepseek/x"), {}, "stands before / as a provider"),
        (("pi", "--model", "$(x)"), {}, "characters that agents misread"),
        (("pi", "--model", "fast"), {"THINKBACK_KEY": "!touch x"}, "no gateway key has"),
        (("codex", "--key", "NOT_THERE"), {}, "there is no key NOT_THERE"),
        (("codex", "--key", KEY), {}, "a key goes by the name of an environment variable"),
        (("codex", "--gateway", f"http://a:{FOREIGN}@h"), {}, "must be like http://127.0.0.1:8484"),
        (("codex", "--gateway", "http://h/?key=x"), {}, "must be like"),
        (("codex", "--gateway", "http://h:99999"), {}, "must be like"),
        (("codex", "--gateway", "file:///etc"), {}, "must be like"),
    ],
)
def test_options_that_cannot_be_are_refused(
    inside: Inside, arguments: tuple[str, ...], environment: dict[str, str], said: str
) -> None:
    """With the reason, before any file is looked at, and without the key."""
    inside.environment.update(environment)
    refused = inside("connect", *arguments)
    assert 2 == refused.code
    assert said in refused.err
    assert not {KEY, FOREIGN, "touch"} & set(refused.err.split())
    assert {} == files_in(inside.place)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", "http://127.0.0.1:8484/v1"),
        ("[server]\nport = 9000\nhost = '0.0.0.0'\n", "http://127.0.0.1:9000/v1"),
        ("[server]\nhost = '::'\n", "http://[::1]:8484/v1"),
        ("[server]\nport = 0\n", ""),
    ],
)
def test_the_address_is_the_one_that_is_configured(inside: Inside, text: str, address: str) -> None:
    """As it is reached from this machine; a port that is another one each time is not guessed."""
    inside.config.mkdir()
    (inside.config / "gateway.toml").write_text(text)
    shown = inside("connect", "codex")
    assert (0 if address else 2) == shown.code
    assert (f'+base_url = "{address}"' if address else "give the address with --gateway") in shown.out + shown.err


@pytest.fixture
def running() -> Iterator[int]:
    """A process that goes by the name of Codex, with a key among its arguments."""
    with subprocess.Popen(["codex", "60"], executable="/bin/sleep") as process:
        yield process.pid
        process.kill()


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are read from /proc")
def test_an_agent_that_runs_is_named(inside: Inside, running: int) -> None:
    """With its process, and without what it was started with; it is a note, and the settings are written."""
    written = inside("connect", "codex", "--write")
    assert 0 == written.code
    assert "Codex runs (process" in written.err
    assert str(running) in written.err


def test_a_byte_order_mark_and_no_key_do(inside: Inside) -> None:
    """The mark stays; without a key the agents get a word that stands for one."""
    path = inside.place / ".claude/settings.json"
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbf{}")
    shown = inside("connect", "claude-code", "--write", THINKBACK_KEY="")
    assert "these settings work only with a gateway that runs with --no-auth" in shown.err
    assert path.read_bytes().startswith(b"\xef\xbb\xbf{\n")
    assert {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8484", "ANTHROPIC_AUTH_TOKEN": "none"} == json.loads(
        path.read_text(encoding="utf-8-sig")
    )["env"]
    inside("connect", "claude-code", "--undo")
    assert b"\xef\xbb\xbf{}" == path.read_bytes()


@pytest.mark.parametrize(
    ("agent", "name", "text", "beside"),
    [
        (
            "claude-code",
            ".claude/settings.json",
            '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}',
            "CLAUDE_CODE_USE_BEDROCK",
        ),
        ("gemini-cli", ".gemini/.env", "GEMINI_MODEL=gemini-3-pro\n", "GEMINI_MODEL"),
        ("opencode", ".config/opencode/opencode.json", '{"enabled_providers": ["openai"]}', "enabled_providers"),
        ("crewai", ".env", "export OPENAI_BASE_URL=http://elsewhere/v1\n", "OPENAI_BASE_URL"),
    ],
)
def test_a_setting_of_the_file_that_leads_elsewhere_is_named(
    inside: Inside, agent: str, name: str, text: str, beside: str
) -> None:
    """As a variable of the environment is: the agent reads it beside ours, and may never reach the gateway."""
    path = inside.place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    shown = inside("connect", agent, "--model", "fast")
    assert f"{path} has {beside}, which" in shown.err
    assert 1 == shown.err.count(", which")


@pytest.mark.parametrize("agent", ["aider", "crewai"])
def test_the_newer_name_of_an_address_is_named(inside: Inside, agent: str) -> None:
    """It wins over the older one that is written: the key would go there."""
    shown = inside("connect", agent, "--model", "fast", OPENAI_BASE_URL="http://elsewhere/v1")
    assert "the environment has OPENAI_BASE_URL, which" in shown.err


def test_of_two_files_the_one_that_wins_is_written(inside: Inside) -> None:
    """opencode reads both, and takes what stands in the second."""
    folder = inside.place / ".config/opencode"
    folder.mkdir(parents=True)
    for name in ("opencode.json", "opencode.jsonc"):
        (folder / name).write_text('{"model": "anthropic/old"}')
    inside("connect", "opencode", "--model", "fast", "--write")
    assert '{"model": "anthropic/old"}' == (folder / "opencode.json").read_text()
    assert "thinkback/fast" == json.loads((folder / "opencode.jsonc").read_text())["model"]


def test_a_write_that_fails_midway_wedges_nothing(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is as the write before left it: another goes on from there, and everything is taken back."""
    path = inside.place / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('model = "gpt-6"\n')
    path.chmod(0o640)
    inside("connect", "codex", "--model", "fast", "--write")
    other = ("connect", "codex", "--model", "slow", "--gateway", "http://127.0.0.1:9999", "--write")
    renames = os.replace

    def full(source: str, name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if name == path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        renames(source, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    for also in ((), other):
        with monkeypatch.context() as disk:
            disk.setattr(os, "replace", full)
            failed = inside(*other)
        assert (2, True) == (failed.code, "No space left" in failed.err)
        if also:
            assert (0, True) == (inside(*also).code, "9999" in path.read_text())
        assert 0 == inside("connect", "codex", "--undo").code
        assert ('model = "gpt-6"\n', 0o640) == (path.read_text(), path.stat().st_mode & 0o777)
        inside("connect", "codex", "--model", "fast", "--write")


def test_writes_at_once_leave_nothing_after_undo(command: Command) -> None:
    """Sixteen, each of another gateway: one after another, and back means as it was."""
    path = command.place / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('model = "gpt-6"\n')
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(
                lambda port: command(
                    "connect", "codex", "--write", "--gateway", f"http://127.0.0.1:{port}", THINKBACK_KEY=KEY
                ),
                range(9000, 9016),
            )
        )
    assert {0} == {one.code for one in done}, [one.err for one in done if one.code]
    assert 0 == command("connect", "codex", "--undo").code
    assert 'model = "gpt-6"\n' == path.read_text()
    assert {"config.toml"} == {one.name for one in path.parent.iterdir()}


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can write in another's home")
def test_root_writes_nothing_in_anothers_home(inside: Inside) -> None:
    """Neither the file nor a directory on its way, of the agent's or of thinkback's: its owner could not use them."""
    home = inside.place / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    refused = inside("connect", "codex", "--write", HOME=str(home))
    assert (2, []) == (refused.code, list(home.iterdir()))
    assert f"{home} belongs to another user" in refused.err
    assert "run the command as that user" in refused.err


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_kill_leaves_no_key(tmp_path: Path, call: str) -> None:
    """At any step: the draft has no name before it is whole, and the next command removes one that was left."""
    path = tmp_path / "config.toml"
    process = os.fork()
    if process == 0:
        setattr(os, call, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        files.replace(path, KEY.encode(), 0o600, None)
        os._exit(0)
    assert signal.SIGKILL == os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) * -1
    if call == "replace":
        files.replace(path, b"another", 0o600, None)
    assert [] == [one.name for one in tmp_path.iterdir() if KEY.encode() in one.read_bytes()]


@pytest.mark.parametrize("agent", BY_HAND)
def test_an_agent_whose_files_are_not_written_is_told_its_lines(inside: Inside, agent: str) -> None:
    """As the page has them; the key by its name, or the word for none; nothing is written."""
    shown = inside("connect", agent, "--model", "fast")
    page = (Path(__file__).parents[3] / "docs" / "coding-agents.md").read_text(encoding="utf-8")
    _, found, section = page.partition(f"\n### {BY_HAND[agent].title}\n")
    assert (0, True) == (shown.code, bool(found))
    assert shown.out in section.partition("\n### ")[0]
    assert (True, False) == ("THINKBACK_KEY" in shown.out, KEY in shown.out + shown.err)
    assert "none" in inside("connect", agent, THINKBACK_KEY="").out
    refused = inside("connect", agent, "--write")
    assert (2, True) == (refused.code, "no file of" in refused.err)
    assert {} == files_in(inside.place)


def test_any_other_program_is_told_the_addresses(inside: Inside) -> None:
    """Of each protocol, with the key's name; what is written is named."""
    shown = inside("connect", "zed", "--gateway", "https://gateway.example")
    assert 0 == shown.code
    for line in ("Responses: https://gateway.example/v1", "messages: https://gateway.example", 'key: "$THINKBACK_KEY"'):
        assert f"{line}\n" in shown.out
    assert "'zed' is not known" in shown.err
    assert KEY not in shown.out + shown.err
    refused = inside("connect", "zed", "--undo")
    assert (2, True) == (refused.code, all(agent in refused.err for agent in AGENTS))
