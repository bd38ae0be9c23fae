"""``connect``: print, write or take back the settings that point a coding agent at a gateway. It starts nothing."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click
from click.shell_completion import CompletionItem

from thinkback.cli import hints, terminal
from thinkback.cli.connect import files
from thinkback.cli.connect.agents import AGENTS, BY_HAND, NO_KEY, OTHER, Agent, File, filled
from thinkback.cli.connect.documents import (
    FORMATS,
    MISSING,
    Change,
    applied,
    diff,
    ending,
    standing,
    taken_back,
    unmet,
    value_at,
)
from thinkback.cli.connect.files import Found, Record
from thinkback.cli.connect.processes import running
from thinkback.cli.connect.source import Damaged
from thinkback.errors import RuleFileError, SettingError

KEY = "THINKBACK_KEY"
_ADDRESS = "http://127.0.0.1:8484"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# some agents put variables in place of $NAME and {env:NAME}, or run what begins with !: neither is ever written
_PLAIN_KEY = re.compile(r"[A-Za-z0-9._~+/=:-]+")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")


class Access(NamedTuple):
    """What an agent is pointed at: the gateway's address, its key and the key's name, the alias."""

    root: str
    key: str
    variable: str
    model: str

    @property
    def is_keyed(self) -> bool:
        """Whether there is a key that must not be seen."""
        return self.key != NO_KEY


class Plan(NamedTuple):
    """What becomes of a file: ``after`` is ``None`` where it is removed. ``record`` is kept; ``None`` forgets it."""

    path: Path
    before: Found
    after: bytes | None
    mode: int
    record: Record | None

    @property
    def is_change(self) -> bool:
        """Whether anything is different afterwards."""
        return self.before.data != self.after


@click.command("connect", short_help="Point a coding agent at the gateway.")
@click.argument("agent", shell_complete=lambda *_: [CompletionItem(name) for name in (*AGENTS, *BY_HAND)])
@click.option("--write", is_flag=True, help="Write the settings, and keep a copy of the old file.")
@click.option("--undo", is_flag=True, help="Undo what --write wrote.")
@click.option("--gateway", metavar="URL", default="", help="The gateway's address; default: the one in gateway.toml.")
@click.option("--key", "key_name", metavar="NAME", default="", help=f"Name of the gateway's key; default: {KEY}.")
@click.option("--model", metavar="ALIAS", default="", help="The model, by its name at the gateway.")
def connect_command(agent: str, write: bool, undo: bool, gateway: str, key_name: str, model: str) -> None:
    """Show the settings that point AGENT at a gateway, as a diff of its file; --write writes them, --undo undoes it.

    The rest of the file stays unchanged, comments included. The key comes from the environment or from those of
    `thinkback keys list`; a gateway without authentication needs none. The key is never written to a file inside a
    repository: there the agent takes it from its environment. For copilot-cli, cline and continue the command shows the
    lines to use, for any other program the gateway's addresses.
    """
    if undo and (write or gateway or key_name or model):
        raise click.UsageError("--undo takes no other option")
    if agent not in AGENTS:
        _show_steps(agent, write or undo, gateway, key_name, model)
        return
    row = AGENTS[agent]
    places = [files.place_of(file, os.environ) for file in row.files]
    if undo:
        if any(files.kept(agent, place) for place in places):
            with files.only_one():
                _undo(agent, row, places)
        else:
            terminal.out(f"nothing of {row.title} was written by this command, or it was undone already")
        return
    access = _access(row, agent, gateway, key_name, model)
    held = [
        place
        for file, place in zip(row.files, places, strict=True)
        if access.is_keyed and file.has_key and files.repository_of(place, os.environ)
    ]
    for place in places if write else ():
        files.check_owner(place)
    with files.only_one() if write else nullcontext():
        plans = [
            _planned(agent, place, file, _changes(file, access, in_repository=place in held))
            for file, place in zip(row.files, places, strict=True)
        ]
        if row.code:
            code_key = f'os.environ["{access.variable}"]' if access.is_keyed else f'"{NO_KEY}"'
            terminal.out(f"in your code: {filled(row.code, {**access._asdict(), 'code_key': code_key})}")
        _show(plans, access)
        for plan in plans if write else ():
            if plan.is_change:
                _write(agent, plan)
    for text in _remarks(row, access, held, plans):
        terminal.note(text)
    changed = any(plan.is_change for plan in plans)
    if changed and not write:
        terminal.note("nothing was written: the same command with --write writes it")
    if changed and write:
        terminal.note(f"{hints.command('connect --undo', agent)} undoes it")


def _show_steps(agent: str, is_write: bool, gateway: str, key_name: str, model: str) -> None:
    """The lines for an agent whose files are not written here, or the addresses for any program."""
    row = BY_HAND.get(agent, OTHER)
    if is_write:
        name = row.title or repr(agent)
        raise click.UsageError(
            f"no file of {name} is written: without --write and --undo the command shows what {name} needs; "
            f"it writes the files of {', '.join(AGENTS)}"
        )
    access = _access(row, agent, gateway, key_name, model)
    terms = {
        **access._asdict(),
        "model": model or "MODEL",
        "shell_key": f'"${access.variable}"' if access.is_keyed else NO_KEY,
        "secret": f"${{{{ secrets.{access.variable} }}}}" if access.is_keyed else NO_KEY,
    }
    for step in row.steps:
        terminal.out(step.format_map(terms))
    if row is OTHER:
        terminal.note(f"{agent!r} is not known: these are the gateway's addresses for any program")
    if not model:
        terminal.note("MODEL is an alias of the gateway, or ENDPOINT/MODEL")
    for text in _remarks(row, access, (), ()):
        terminal.note(text)


def _access(row: Agent, agent: str, gateway: str, key_name: str, model: str) -> Access:
    """What the options say. Raises ``click.UsageError``, ``SettingError``, ``CredentialError``."""
    from thinkback.session.config import keys

    name = key_name or KEY
    keys.check_name(name)
    key = keys.find((name,), asks_keyring=bool(key_name))
    if key_name and key is None:
        raise keys.missing(name)
    if key is not None and not _PLAIN_KEY.fullmatch(key):
        raise SettingError(
            f"the key {name} contains characters that no gateway key has: an agent may misread them",
            next_actions=("`thinkback gateway keys create NAME` makes a key",),
        )
    if model and not _PLAIN_NAME.fullmatch(model):
        raise SettingError(
            f"the alias {model!r} contains characters that agents misread",
            next_actions=("give the gateway an alias of letters, digits and . _ : / @ + -",),
        )
    if row.needs_model and not model:
        raise click.UsageError(f"{agent} needs --model: it lists its models itself")
    if "/" in model and not row.takes_slash:
        raise SettingError(
            f"{row.title} reads what stands before / as a provider: {model} would not reach the gateway",
            next_actions=("give the gateway an alias without /, under [models] of its configuration",),
        )
    return Access(_root(gateway), key or NO_KEY, name, model)


def _root(given: str) -> str:
    """The gateway's address, without a path. Raises ``SettingError``."""
    address = given or _configured()
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    is_bare = parts.path.rstrip("/") in ("", "/v1") and not (parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("http", "https") or not host or not is_bare or not re.fullmatch(r"[\w.:-]+", host):
        raise SettingError(
            "the gateway's address must be like http://127.0.0.1:8484, without a path, a user or a key",
            next_actions=("`thinkback gateway` prints it when it starts",),
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")


def _configured() -> str:
    """The address in ``gateway.toml``, else the usual one. Raises ``RuleFileError``, ``SettingError``."""
    from thinkback.session import config
    from thinkback.settings.files import read_toml

    file = config.config_dir() / "gateway.toml"
    text = config.text_of(file)
    server = read_toml(str(file), text).get("server") if text is not None else None
    if not isinstance(server, dict):
        return _ADDRESS
    host, port = str(server.get("host", "127.0.0.1")).strip("[]"), server.get("port", 8484)
    if port == 0:
        raise SettingError(
            f"{file} sets port 0, so the gateway picks a free port at each start",
            next_actions=("give the address with --gateway",),
        )
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _changes(file: File, access: Access, *, in_repository: bool) -> list[Change]:
    terms = access._asdict()
    wanted = {"always": True, "file": not in_repository, "environment": in_repository, "model": bool(access.model)}
    return [
        Change(
            tuple(part.format_map(terms) for part in setting.path),
            filled(setting.value, terms),
            access.is_keyed and setting.value == "{key}",
        )
        for setting in file.settings
        if wanted[setting.when]
    ]


def _planned(agent: str, path: Path, file: File, changes: Sequence[Change]) -> Plan:
    """What writing ``changes`` does. Raises ``RuleFileError`` for a file that is damaged, ``SettingError``."""
    before, record = files.read(path), files.kept(agent, path)
    mark, text = files.text_of(path, before.data)
    form = FORMATS[file.format]
    nothing = Plan(path, before, before.data, before.mode, record)
    try:
        written = standing(form, text, record.changes, record.earlier) if record else []
        stale = {one.path for one in written} - {one.path for one in changes}
        if not unmet(form, text, changes) and not stale:
            return nothing
        base, original = text, before
        if record is not None:
            base = taken_back(form, text, files.text_of(path, record.original.data)[1], written).text
            is_ours = _digest(before.data) == record.written
            edited = Found(mark + base.encode(), record.original.mode) if before.data is not None else before
            original = record.original if is_ours else edited
        if file.owned and value_at(form.read(base), file.owned) is not MISSING and unmet(form, base, changes):
            name = ".".join(file.owned)
            raise SettingError(
                f"{path} has {name} already, and this command did not write it: nothing was written",
                next_actions=(f"rename {name} there, or remove it",),
            )
        ours = unmet(form, base, changes)
        after = mark + applied(form, base, changes).encode()
    except Damaged as error:
        raise _damaged(path, error) from None
    return Plan(path, before, after, 0o600, Record(tuple(ours), _digest(after), original, tuple(written)))


def _damaged(path: Path, error: Damaged) -> RuleFileError:
    return RuleFileError(
        f"{path}: {error}: nothing was written",
        details={"file": str(path), "line": error.line},
        next_actions=(f"correct line {error.line}, or change the file by hand",),
    )


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _write(agent: str, plan: Plan) -> None:
    """The record first: where this ends in between, it has what may be in the file, from this time or the last."""
    assert plan.record is not None
    files.keep(agent, plan.path, plan.record)
    files.replace(plan.path, plan.after, plan.mode, plan.before.data)
    files.keep(agent, plan.path, plan.record._replace(earlier=()))
    terminal.out(f"written: {plan.path}")
    if plan.record.original.data is not None:
        terminal.note(f"as it was: {files.original_of(agent, plan.path)}")


def _show(plans: Sequence[Plan], access: Access) -> None:
    secrets = (access.key,) if access.is_keyed else ()
    for plan in plans:
        if not plan.is_change:
            terminal.out(f"nothing changes: {plan.path}")
            continue
        texts = [files.text_of(plan.path, data)[1] for data in (plan.before.data, plan.after)]
        for line in diff(str(plan.path), texts[0], texts[1], secrets):
            terminal.out(line)


def _remarks(row: Agent, access: Access, held: Sequence[Path], plans: Sequence[Plan]) -> Iterator[str]:
    """What a person is to know, each a line; no key whole."""
    if access.is_keyed:
        yield f"the key is {access.variable}, {ending(access.key)}"
    else:
        yield f"there is no key {access.variable}: these settings work only with a gateway that runs with --no-auth"
    for path in held:
        variable = row.variable or access.variable
        yield (
            f"{path} is inside the repository {files.repository_of(path, os.environ)}, so the key stays out of it: "
            f"start {row.title} with the key in the variable {variable}"
        )
    if not access.model and row.without_model:
        yield f"no --model was given: {row.without_model}"
    host = urlsplit(access.root).hostname
    if access.root.startswith("http:") and host not in _LOOPBACK:
        yield f"{access.root} is not encrypted: the key and all messages are sent there in clear text"
    for name in (name for name in row.beside if os.environ.get(name)):
        yield f"the environment has {name}, which {row.title} reads as well"
    for file, plan in zip(row.files, plans, strict=True):
        for name in _beside(row, file, plan):
            yield f"{plan.path} has {name}, which {row.title} reads as well"
    yield from row.notes
    found = running(row.programs)
    if found:
        listed = ", ".join(str(process) for process in found)
        yield f"{row.title} runs (process {listed}): it reads its settings when it starts"


def _beside(row: Agent, file: File, plan: Plan) -> Iterator[str]:
    """Keys of a file that lead elsewhere than ours, or win over them."""
    data = FORMATS[file.format].read(files.text_of(plan.path, plan.after)[1])
    ours = {setting.path for setting in file.settings}
    # variables stand under `env` in the files that have more than variables
    above = () if file.format == "dotenv" else ("env",)
    for path in (*((*above, name) for name in row.beside), *((key,) for key in file.beside)):
        if path not in ours and value_at(data, path) not in (MISSING, "", None):
            yield path[-1]


def _undo(agent: str, row: Agent, places: Sequence[Path]) -> None:
    """Take back what is recorded for each file; all of it, or nothing where a line of ours was changed."""
    plans = [plan for file, path in zip(row.files, places, strict=True) if (plan := _undoing(agent, path, file))]
    if not plans:
        terminal.out(f"nothing of {row.title} was written by this command, or it was undone already")
        return
    secrets = {str(one.value) for plan in plans if plan.record for one in plan.record.changes if one.is_secret}
    for plan in plans:
        texts = [files.text_of(plan.path, data)[1] for data in (plan.before.data, plan.after)]
        for line in diff(str(plan.path), texts[0], texts[1], tuple(secrets)):
            terminal.out(line)
    for plan in plans:
        if plan.is_change:
            files.replace(plan.path, plan.after, plan.mode, plan.before.data)
        files.forget(agent, plan.path)
        terminal.out(f"{'undone' if plan.after is not None else 'removed'}: {plan.path}")


def _undoing(agent: str, path: Path, file: File) -> Plan | None:
    """What taking back does. Raises ``SettingError`` where a line of ours was changed since, with how."""
    record = files.kept(agent, path)
    if record is None:
        return None
    before, original = files.read(path), record.original
    if before.data is None and original.data is not None:
        raise SettingError(
            f"{path} is gone: there is nothing to undo",
            next_actions=(f"its original is stored at {files.original_of(agent, path)}",),
        )
    if before.data is None or _digest(before.data) == record.written:
        return Plan(path, before, original.data, original.mode, None)
    mark, text = files.text_of(path, before.data)
    form = FORMATS[file.format]
    try:
        written = standing(form, text, record.changes, record.earlier)
        taken = taken_back(form, text, files.text_of(path, original.data)[1], written)
        if taken.changed:
            raise _changed(agent, path, form.read(text), taken.changed)
        is_empty = original.data is None and not taken.text.strip(" \t\r\n{}")
    except Damaged as error:
        raise _damaged(path, error) from None
    after = None if is_empty else mark + taken.text.encode()
    return Plan(path, before, after, original.mode if after == original.data else before.mode, None)


def _changed(agent: str, path: Path, data: Mapping[str, object], changes: Sequence[Change]) -> SettingError:
    lines = []
    for change in changes:
        now = value_at(data, change.path)
        written = "(a key)" if change.is_secret else change.value
        there = "(nothing)" if now is MISSING else "(another key)" if change.is_secret else now
        lines.append(f"  -{change.name} = {written}\n  +{change.name} = {there}")
    listed = "\n".join(lines)
    backup = files.original_of(agent, path)
    aside = f"the original file is stored at {backup}" if backup.exists() else "or remove the lines by hand"
    return SettingError(
        f"{path}: the written settings were changed since, so nothing was undone\n{listed}",
        details={"file": str(path), "keys": [change.name for change in changes]},
        next_actions=("restore the written settings, and run the command again", aside),
    )
