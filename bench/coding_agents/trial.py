"""``python -m bench.coding_agents.trial``: hundreds of turns of one agent through a gateway, while both are killed.

The seed says which turns compact, which change the model, and when the gateway (kill -9, started again) and the agent
are killed; it is printed. At the end the responses that the referee sent are compared with those in the log, by the
digest of their requests. Only a response that was under way when the gateway was killed may be missing: no client had
it whole. The exit code is 1 where another is missing, one is in the log that was not sent, one was refused, a turn
without a kill failed, or the log does not verify.
"""

from __future__ import annotations

import argparse
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import thinkback
from bench.coding_agents.agents import AGENTS
from bench.coding_agents.cell import SECONDS, Talk, Where
from bench.coding_agents.install import PLACE, installed
from bench.coding_agents.model import agent_step, ended
from bench.coding_agents.page import DEMANDING
from bench.gateway_clients.gateway import configuration, free_port, start
from bench.gateway_clients.places import ALIASES
from thinkback.model.commits import Request, Response
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.stores.gateway_state import open_gateway_state
from thinkback_referee import LOST, Exchange, Referee

TURNS, KILLS, COMPACTIONS, SWITCHES, SESSION = 300, 32, 24, 30, 25
"""How often what happens; a session has so many turns."""
PACE = 0.01
"""Seconds between two events of a stream, so that kills find something under way."""
_LATEST = 1.5
_PATIENCE = 30.0


class Turn(NamedTuple):
    """What happens in a turn; ``gateway`` and ``agent`` are killed after so many seconds, 0 not at all."""

    plan: str
    compacts: bool = False
    model: str = ""
    gateway: float = 0.0
    agent: float = 0.0


class Sent(NamedTuple):
    """A response of the referee's: the digest of its request, when it began, and where."""

    digest: str
    at: float
    place: str


class Trial(NamedTuple):
    """What came of it."""

    turns: int
    failed: list[str]
    refused: list[str]
    forgot: int
    sent: list[Sent]
    kills: list[float]
    agent_kills: int
    log: Counter[str]
    broken: int
    open: Counter[str]

    @property
    def missing(self) -> list[Sent]:
        """Responses whose requests are not in the log with a response, the last of equal ones."""
        left = self.log.copy()
        gone = []
        for each in self.sent:
            if left[each.digest]:
                left[each.digest] -= 1
            else:
                gone.append(each)
        return gone

    @property
    def lost(self) -> list[Sent]:
        """Those of them that were not under way at a kill of the gateway."""
        return [each for each in self.missing if not any(0 <= kill - each.at <= _LATEST + 1 for kill in self.kills)]

    @property
    def made_up(self) -> int:
        """Responses in the log that the referee did not send."""
        return sum((self.log - Counter(each.digest for each in self.sent)).values())


def plan(seed: int, turns: int) -> list[Turn]:
    """What happens in each turn."""
    chance = random.Random(seed)
    scale = turns / TURNS
    models = [ALIASES[name] for name in DEMANDING]
    kinds = {name: set(chance.sample(range(turns), max(1, round(count * scale)))) for name, count in _COUNTS.items()}
    found = []
    for number in range(turns):
        found.append(
            Turn(
                plan=chance.choice(("boxes", "again", "again")),
                compacts=number in kinds["compactions"] and number % SESSION > 1,
                model=chance.choice(models) if number in kinds["switches"] else "",
                gateway=chance.uniform(0.2, _LATEST) if number in kinds["gateway"] else 0.0,
                agent=chance.uniform(0.2, _LATEST) if number in kinds["agent"] else 0.0,
            )
        )
    return found


_COUNTS = {"compactions": COMPACTIONS, "switches": SWITCHES, "gateway": KILLS, "agent": KILLS}


class _Gateway:
    """The gateway's process, which is killed and started again under the same address."""

    def __init__(self, directory: Path, port: int) -> None:
        self.kills: list[float] = []
        self._directory, self._port = directory, port
        self._process = start(directory, port)

    def kill(self) -> None:
        """End it at once, and start another."""
        self._process.kill()
        self._process.wait()
        self.kills.append(time.monotonic())
        self._process = start(self._directory, self._port)

    def close(self) -> None:
        """End it in good order."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)


def run(name: str, seed: int, turns: int, directory: Path) -> Trial:
    """The whole trial with an agent that is installed."""
    sent: list[Sent] = []
    refused: list[str] = []
    lock = threading.Lock()

    def note(exchange: Exchange) -> None:
        with lock:
            if exchange.status == 200:
                sent.append(
                    Sent(sha256(exchange.raw).hexdigest(), time.monotonic(), f"{exchange.host} {exchange.model}")
                )
            else:
                refused.append(f"{exchange.host}: {exchange.verdict.reason}")

    failed: list[str] = []
    forgot = agent_kills = 0
    first = True
    with Referee(house=agent_step, pace=PACE, report=note) as referee:
        port = free_port()
        (directory / "gateway.toml").write_text(configuration(directory, port, referee), encoding="utf-8")
        with closing(_Gateway(directory, port)) as gateway:
            with closing(open_gateway_state(directory / "store")) as office:
                secret, row = new_key(Terms(), time.time_ns() // 1000, name="trial")
                office.keys.create(row)
            model = ALIASES[next(iter(DEMANDING))]
            agent, found, talk = AGENTS[name], installed(name), None
            for number, turn in enumerate(plan(seed, turns)):
                model = turn.model or model
                if talk is None or number % SESSION == 0:
                    where = Where(f"http://127.0.0.1:{port}", secret, model)
                    talk = Talk(agent, found, referee, where, directory / f"session-{number}")
                    first = True
                elif turn.model:
                    talk.connect(model)
                before = len(referee.requests)
                command = agent.first if first else agent.compact if turn.compacts else agent.again
                running = talk.start(command, "talk" if turn.compacts else turn.plan)
                if turn.gateway and running.lives(turn.gateway):
                    gateway.kill()
                if turn.agent and running.lives(turn.agent):
                    agent_kills += 1
                    ran = running.end()
                else:
                    ran = running.wait(SECONDS)
                seen = [each.step.text for each in referee.requests[before:] if each.step]
                first = first and not any(seen)
                forgot += any(LOST in text and text.startswith("The plan") for text in seen)
                calm = not (turn.gateway or turn.agent)
                wanted = ended("talk" if turn.compacts else turn.plan)
                if calm and (ran.failed or wanted.split(".")[0] not in ran.output):
                    failed.append(
                        f"turn {number} with {model}: {(ran.failed or ran.output or 'nothing printed')[-300:]}"
                    )
                print(_told(number, turn, model, ran.failed), flush=True)
                referee.forget_requests()
            kills = gateway.kills
    return Trial(turns, failed, refused, forgot, sent, kills, agent_kills, *_in_log(directory / "store"))


def _told(number: int, turn: Turn, model: str, failed: str) -> str:
    kinds = {"compacts": turn.compacts, "gateway killed": turn.gateway, "agent killed": turn.agent}
    what = ", ".join(name for name, so in kinds.items() if so)
    return f"{number} {model} {turn.plan} {what} {failed[:80]}".rstrip()


def _in_log(store: Path) -> tuple[Counter[str], int, Counter[str]]:
    """The digests of requests that have a response in the logs, how many of these responses were broken off, and the
    digests of the other requests.
    """
    answered: Counter[str] = Counter()
    unanswered: Counter[str] = Counter()
    broken = 0
    for path in _logs(store):
        with thinkback.open(path, rules={}, settings={}) as log:
            for info in log.sessions():
                commits = log.session(info.name).log()
                whole = {one.response: one.value.complete for one in commits if isinstance(one.value, Response)}
                for commit in commits:
                    if isinstance(commit.value, Request):
                        is_there = commit.response in whole
                        (answered if is_there else unanswered)[commit.value.sent_digest] += 1
                        broken += is_there and not whole[commit.response]
    return answered, broken, unanswered


def _logs(store: Path) -> list[Path]:
    """The logs of all tenants, without the gateway's own state."""
    return [path for path in sorted(store.rglob("*.db")) if not path.name.startswith("gateway")]


def main() -> int:
    """Print the turns and the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.coding_agents.trial")
    parser.add_argument("--agent", choices=("codex", "claude-code"), default="codex")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--keep", type=Path, help="a directory that stays")
    options = parser.parse_args()
    PLACE.mkdir(exist_ok=True)
    if reason := installed(options.agent).missing:
        print(f"{options.agent} is left out: {reason}")
        return 0
    print(f"seed {options.seed} (--seed {options.seed} does the same again)", flush=True)
    with tempfile.TemporaryDirectory(prefix="trial-", ignore_cleanup_errors=True) as directory:
        place = options.keep or Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        trial = run(options.agent, options.seed, options.turns, place.resolve())
        verified = _verified(place / "store")
    for name, value in _figures(trial, verified):
        print(f"{name:<44} {value:>8}")
    missing = [f"lost: {each.place}, {'in' if trial.open[each.digest] else 'not in'} the log" for each in trial.lost]
    for text, count in Counter([*trial.failed, *trial.refused, *missing]).most_common(20):
        print(f"    {count} x {text}")
    good = not (trial.failed or trial.refused or trial.lost or trial.made_up or trial.forgot) and verified
    return int(not good)


def _figures(trial: Trial, verified: bool) -> list[tuple[str, object]]:
    return [
        ("turns", trial.turns),
        ("kills of the gateway, of the agent", f"{len(trial.kills)}, {trial.agent_kills}"),
        ("responses that the referee sent", len(trial.sent)),
        ("responses in the log", sum(trial.log.values())),
        ("of these broken off by a kill", trial.broken),
        ("under way at a kill of the gateway", len(trial.missing) - len(trial.lost)),
        ("lost", len(trial.lost)),
        ("in the log and not sent", trial.made_up),
        ("turns that failed without a kill", len(trial.failed)),
        ("requests refused", len(trial.refused)),
        ("turns whose reasoning was forgotten", trial.forgot),
        ("the log verifies", "yes" if verified else "no"),
    ]


def _verified(store: Path) -> bool:
    """What ``thinkback fsck`` says of every log."""
    command = [sys.executable, "-m", "thinkback", "fsck", "--db"]
    done = [subprocess.run([*command, str(path)], stdout=subprocess.DEVNULL).returncode for path in _logs(store)]
    return bool(done) and not any(done)


if __name__ == "__main__":
    sys.exit(main())
