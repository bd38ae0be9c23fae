"""``python -m bench.upgrade``: the upgrade and the roll-back of docs/operating.md, with an earlier thinkback.

``EARLIER``, whose logs have an earlier format, and this checkout are installed into environments of their own, which
share the packages that thinkback needs. A link says which one serves. A gateway with two tenants is upgraded and
rolled back as the page describes it, once on a directory and once on PostgreSQL.
"""

from __future__ import annotations

import io
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.servers.gateway.harness.house import REPLAYS, House, Provider, answer, thought
from tests.stores.postgres_server import Server

ROOT = Path(__file__).parents[1]
EARLIER = "58a8af39"  # of SQLite it writes format 4, of PostgreSQL 2
TENANTS = ("red", "blue")
QUESTIONS = ("What is 7 times 8?", "And times 3?", "Plus 1?", "And the half?")
_RAISED, _REFUSED = "which the first write brings to", "this thinkback reads up to"


def install(source: Path, place: Path) -> Path:
    """What the page installs, without a package index."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (library,) = place.glob("lib/python*/site-packages")
    (library / "shared.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", f"{place}/bin/python"]
    subprocess.run([*pip, "install", "--no-deps", "--no-build-isolation", str(source)], check=True)
    return place


class Service(House):
    """The gateway of the page: what a link points at, with a key for each tenant. ``log``: what its commands read."""

    def __init__(self, root: Path, provider: Provider, earlier: Path, server: Server | None) -> None:
        self.root, self.link, self.provider, self.server = root, root / "thinkback", provider, server
        self.link.symlink_to(earlier)
        self.program = (str(self.link / "bin" / "thinkback"),)
        store = server.make_database("thinkback") if server else str(root / "var")
        self.log = store if server else f"{store}/{TENANTS[0]}.db"
        super().__init__(root / "etc", provider.url, store)
        self._secrets = [self._key(earlier, tenant) for tenant in TENANTS]

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "PYTHONPATH": ""}

    def point_to(self, installed: Path) -> None:
        """Change the link, and restart."""
        self.stop()
        self.link.unlink()
        self.link.symlink_to(installed)
        self.start()

    def run(self, installed: Path, *arguments: str) -> tuple[int, str]:
        """The exit code of a command of an installed thinkback, and what it prints."""
        command = [str(installed / "bin" / "thinkback"), *arguments]
        environment = {**self._environment(), **({"THINKBACK_TENANT": TENANTS[0]} if self.server else {})}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.decode()

    def _key(self, installed: Path, tenant: str) -> str:
        made = ("gateway", "keys", "create", tenant, "--tenant", tenant, "--config", str(self.config))
        return next(word for word in self.run(installed, *made)[1].split() if word.startswith("tb-"))

    def go_on(self, turn: int) -> list[str]:
        """What is recognised in question ``turn`` of each tenant, by a client that keeps texts alone."""
        found = []
        for tenant, secret in zip(TENANTS, self._secrets, strict=True):
            questions = [f"{tenant}: {question}" for question in QUESTIONS[:turn]]
            said = [answer(question) for question in questions[:-1]]
            reply = self.talk(questions, said, authorization=f"Bearer {secret}", **REPLAYS)
            found.append(reply.headers["thinkback-reattach"] if reply.is_acknowledged else str(reply.status))
            if reply.is_acknowledged:
                sent = [message.get("reasoning_content") for message in self.provider.asked[-1]["messages"][1::2]]
                lost = int(found[-1].rpartition("missing=")[2]) if "missing=" in found[-1] else 0
                known = len(said) - lost  # what is lost are the last ones
                assert sent == [*map(thought, questions[:known]), *[None] * lost], sent
        return found

    def copy(self, installed: Path) -> bool:
        """Copy the store while the gateway serves."""
        if not self.server:
            return self.run(installed, "gateway", "--config", str(self.config), "backup", f"{self.root}/copy")[0] == 0
        self.server.run("pg_dump", "--format=custom", f"--file={self.server.place}/thinkback.dump", self.store)
        return True

    def restore(self) -> None:
        """Put the copy in the place of the directory, or into a database that the configuration names then."""
        if not self.server:
            Path(self.store).rename(f"{self.store}.old")
            subprocess.run(["cp", "-a", f"{self.root}/copy", self.store], check=True)
            return
        self.server.run("createdb", f"--maintenance-db={self.store}", "restored")
        self.store = self.server.url("restored")
        self.server.run("pg_restore", "--no-owner", f"--dbname={self.store}", f"{self.server.place}/thinkback.dump")
        self.configure("")

    def held(self) -> list[str]:
        """All that stands in the logs of a gateway that is stopped; not keys and usage."""
        if not self.server:
            return [Path(self.store, f"{tenant}.db").read_bytes().hex() for tenant in TENANTS]
        tables = self.server.dump("thinkback").split("INSERT INTO ")
        return [table for table in tables if table.startswith("thinkback.")]


def steps(service: Service, earlier: Path, newer: Path) -> Iterator[tuple[str, object, object]]:
    """Every step of the page: what is seen, and what it promises."""
    check = ("gateway", "--config", str(service.config), "--check")
    yield "the earlier version begins conversations", service.go_on(1), ["not-needed"] * 2
    yield "and goes on with them", service.go_on(2), ["complete"] * 2
    yield "the store is copied", service.copy(newer), True
    code, said = service.run(newer, *check)
    yield "the newer --check says that the format will be raised", (code, _RAISED in said), (0, True)
    service.point_to(newer)
    yield "the newer version goes on, with the same keys", service.go_on(3), ["complete"] * 2
    code, said = service.run(newer, *check)
    yield "by then the format is raised", (code, _RAISED in said), (0, False)
    service.stop()
    held = service.held()
    service.point_to(earlier)
    yield "the earlier version refuses requests on the newer log", service.go_on(3), ["503"] * 2
    failures = [row["failure"] for row in service.events("request")]
    yield "and its log names the cause", failures, ["format-version"] * 2
    service.stop()
    code, said = service.run(earlier, "sessions", "--db", service.log)
    yield "its commands refuse as well", (code, _REFUSED in said), (7, True)
    yield "the newer log is as it was", service.held() == held, True
    code, said = service.run(newer, "fsck", "--db", service.log)
    yield "and the newer version finds nothing wrong in it", (code, "clean: 1 session" in said), (0, True)
    service.restore()
    service.start()
    yield "the earlier version knows what is in the copy, and no more", service.go_on(4), ["partial; missing=1"] * 2


def main() -> int:
    """Print the table; 1 where something is not as the page says."""
    failed = False
    with tempfile.TemporaryDirectory(prefix="thinkback-upgrade-") as directory, Provider() as provider:
        archive = subprocess.run(["git", "archive", EARLIER], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(Path(directory, "source"), filter="data")
        earlier = install(Path(directory, "source"), Path(directory, "thinkback-1"))
        newer = install(ROOT, Path(directory, "thinkback-2"))
        for kind in ("a directory", "PostgreSQL"):
            (root := Path(directory, kind)).mkdir()
            with ExitStack() as stack:
                server = stack.enter_context(Server()) if kind == "PostgreSQL" else None
                service = Service(root, provider, earlier, server)
                stack.callback(service.kill)
                print(f"upgrade from {EARLIER} and roll-back, on {kind}", flush=True)
                for name, seen, promised in steps(service, earlier, newer):
                    failed |= seen != promised
                    print(f"  {name:<62} {'met' if seen == promised else f'short: {seen}'}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
