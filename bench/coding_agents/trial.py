"""``python -m bench.coding_agents.trial``: hundreds of turns of one agent through a gateway, while both are killed.

The seed says which turns compact, which change the model, and when the gateway (kill -9, started again) and the agent
are killed; it is printed. At the end the responses that the referee sent are those in the log, by digest (``account``),
but for those that were under way at a kill, each of which is found by the time of that kill; and what the agent got to
its end is in the log, each once. The exit code is 1 where anything else is missing, doubled or made up, a request was
refused, reasoning was forgotten, a turn without a kill failed, too little was killed, or the log does not verify.
Ctrl-C ends it after the turn under way: the figures are those of the turns so far.
"""

from __future__ import annotations

import argparse
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from bench.coding_agents.account import Account, Marked, Sent, Tap, digest_of_step, logs, stored
from bench.coding_agents.agents import AGENTS
from bench.coding_agents.cell import SECONDS, Talk, Where
from bench.coding_agents.install import PLACE, installed
from bench.coding_agents.model import ended
from bench.coding_agents.page import DEMANDING
from bench.coding_agents.process import Running
from bench.gateway_clients.gateway import configuration, free_port, start
from bench.gateway_clients.places import ALIASES
from thinkback.servers.gateway.access.keys import Terms, new_key
from thinkback.stores.gateway_state import open_gateway_state
from thinkback_referee import LOST, Exchange, Referee

TURNS, KILLS, COMPACTIONS, SWITCHES, SESSION = 300, 45, 32, 32, 25
"""How often what is planned; a session has so many turns."""
LEAST = 20
"""How often each must have happened: some kills come when nothing runs any more."""
PACE = 0.01
"""Seconds between two events of a stream, so that kills find something under way."""
_LATEST = 0.6
_PATIENCE, _LOOK = 30.0, 0.1


class Turn(NamedTuple):
    """What happens in a turn; ``gateway`` and ``agent`` are killed so many seconds after its first request, 0 not at
    all.
    """

    plan: str
    compacts: bool = False
    model: str = ""
    gateway: float = 0.0
    agent: float = 0.0


class Trial(NamedTuple):
    """What came of it."""

    turns: int
    failed: list[str]
    refused: list[str]
    forgot: int
    compactions: int
    switches: int
    account: Account

    @property
    def short(self) -> list[str]:
        """What happened less often than it should."""
        least = round(LEAST * self.turns / TURNS)
        counts = {
            "kills of the gateway": len(self.account.kills),
            "kills of the agent": len(self.account.agent_kills),
            "compactions": self.compactions,
            "switches": self.switches,
        }
        return [f"{name}: {count}, and {least} are wanted" for name, count in counts.items() if count < least]


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
                gateway=chance.uniform(0.01, _LATEST) if number in kinds["gateway"] else 0.0,
                agent=chance.uniform(0.01, _LATEST) if number in kinds["agent"] else 0.0,
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
    began: dict[int, float] = {}
    sent: list[Sent] = []
    refused: list[str] = []
    lock, asked, interrupted = threading.Lock(), threading.Event(), threading.Event()
    signal.signal(signal.SIGINT, lambda number, frame: interrupted.set())

    def note(exchange: Exchange) -> None:
        with lock:
            began[id(exchange)] = time.monotonic()
            asked.set()
            if exchange.status != 200:
                refused.append(f"{exchange.host}: {exchange.verdict.reason}")

    def end(exchange: Exchange, whole: bool) -> None:
        with lock:
            since = began.pop(id(exchange))
            if exchange.step is not None and exchange.status == 200:
                place = f"{exchange.host} {exchange.model}"
                sent.append(Sent(digest_of_step(exchange.step), place, since, time.monotonic(), whole))

    def is_at_work(running: Running, seconds: float) -> bool:
        """Whether the agent still runs so many seconds after its first request."""
        while running.lives(0.0) and not asked.wait(_LOOK):
            pass
        return running.lives(seconds)

    failed: list[str] = []
    agent_kills: list[float] = []
    forgot = compactions = switches = 0
    first = True
    with Referee(house=Marked(), pace=PACE, report=note, ended=end) as referee:
        port = free_port()
        (directory / "gateway.toml").write_text(configuration(directory, port, referee), encoding="utf-8")
        with closing(_Gateway(directory, port)) as gateway, closing(Tap(port)) as tap:
            with closing(open_gateway_state(directory / "store")) as office:
                secret, row = new_key(Terms(), time.time_ns() // 1000, name="trial")
                office.keys.create(row)
            model = ALIASES[next(iter(DEMANDING))]
            agent, found, talk = AGENTS[name], installed(name), None
            for number, turn in enumerate(plan(seed, turns)):
                if interrupted.is_set():
                    turns = number
                    break
                switches += turn.model not in ("", model)
                model = turn.model or model
                if talk is None or number % SESSION == 0:
                    where = Where(f"http://127.0.0.1:{tap.port}", secret, model)
                    talk = Talk(agent, found, referee, where, directory / f"session-{number}")
                    first = True
                elif turn.model:
                    talk.connect(model)
                compacts = turn.compacts and not first
                compactions += compacts
                command = agent.first if first else agent.compact if compacts else agent.again
                asked.clear()
                running = talk.start(command, "talk" if compacts else turn.plan)
                if turn.gateway and is_at_work(running, turn.gateway):
                    gateway.kill()
                if turn.agent and is_at_work(running, turn.agent):
                    agent_kills.append(time.monotonic())
                    ran = running.end()
                else:
                    ran = running.wait(SECONDS)
                seen = [each.step.text for each in referee.requests if each.step]
                first = first and not any(seen)
                forgot += any(LOST in text and text.startswith("The plan") for text in seen)
                wanted = ended("talk" if compacts else turn.plan)
                calm = not (turn.gateway or turn.agent)
                if calm and (ran.failed or wanted.split(".")[0] not in ran.output):
                    said = (ran.failed or ran.output or "nothing printed")[-300:]
                    failed.append(f"turn {number} with {model}: {said}")
                print(_told(number, turn, model, ran.failed), flush=True)
                referee.forget_requests()
            kills = gateway.kills
        acknowledged = frozenset(tap.acknowledged)
    account = Account(sent, acknowledged, stored(directory / "store"), kills, agent_kills)
    return Trial(turns, failed, refused, forgot, compactions, switches, account)


def _told(number: int, turn: Turn, model: str, failed: str) -> str:
    kinds = {"compacts": turn.compacts, "gateway killed": turn.gateway, "agent killed": turn.agent}
    what = ", ".join(name for name, so in kinds.items() if so)
    return f"{number} {model} {turn.plan} {what} {failed[:80]}".rstrip()


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
    account = trial.account
    lost = [f"lost: {each.place}, {account.nearest(each)}" for each in account.lost]
    wrong = [*trial.failed, *trial.refused, *trial.short, *lost, *account.unstored, *account.doubled, *account.made_up]
    for text, count in Counter(wrong).most_common(20):
        print(f"    {count} x {text}")
    return int(bool(wrong) or bool(trial.forgot) or not verified)


def _figures(trial: Trial, verified: bool) -> list[tuple[str, object]]:
    account = trial.account
    by_gateway = account.by_gateway
    return [
        ("turns", trial.turns),
        ("kills of the gateway, of the agent", f"{len(account.kills)}, {len(account.agent_kills)}"),
        ("compactions, switches of the model", f"{trial.compactions}, {trial.switches}"),
        ("responses that the referee sent", len(account.sent)),
        ("of these in the log, whole, by digest", len(account.sent) - len(account.missing)),
        ("cut by a kill of the gateway", sum(not each.whole for each in by_gateway)),
        ("sent whole to a gateway that was then killed", sum(each.whole for each in by_gateway)),
        ("of these the slowest, in seconds before it", f"{account.slowest:.2f}"),
        ("broken off by a kill of the agent", len(account.by_agent)),
        ("lost", len(account.lost)),
        ("responses that the agent got to their end", len(account.acknowledged)),
        ("of these not in the log", len(account.unstored)),
        ("in the log twice", len(account.doubled)),
        ("in the log and not sent", len(account.made_up)),
        ("turns that failed without a kill", len(trial.failed)),
        ("requests refused", len(trial.refused)),
        ("turns whose reasoning was forgotten", trial.forgot),
        ("the log verifies", "yes" if verified else "no"),
    ]


def _verified(store: Path) -> bool:
    """What ``thinkback fsck`` says of every log."""
    command = [sys.executable, "-m", "thinkback", "fsck", "--db"]
    done = [subprocess.run([*command, str(path)], stdout=subprocess.DEVNULL).returncode for path in logs(store)]
    return bool(done) and not any(done)


if __name__ == "__main__":
    sys.exit(main())
