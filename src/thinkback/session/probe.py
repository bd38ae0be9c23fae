"""Runs a probe against a host with the user's key, and keeps the row it implies in the user's rule files.

A busy host is asked again as in a turn; nothing of a probe is written to a log, and no key is shown or stored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from random import random
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from thinkback.drive.auth import SIGN_INS
from thinkback.drive.clock import now
from thinkback.drive.http import Httpx2Transport, Transport
from thinkback.errors import CredentialError, NotFoundError, SettingError
from thinkback.model.rule import Endpoint
from thinkback.model.target import Target, merge_headers, name_conversation
from thinkback.rules import load_rulebook, packaged
from thinkback.rules.book import UNKNOWN
from thinkback.session import config
from thinkback.session.endpoint_config import EndpointConfig, Rulebook
from thinkback.session.ids import new_id
from thinkback.turn.probing import experiments, toml
from thinkback.turn.probing.conversation import Answer
from thinkback.turn.probing.experiments import Ask
from thinkback.turn.probing.findings import Findings
from thinkback.turn.probing.row import Probed, conclude
from thinkback.turn.retry import backoff, is_retryable
from thinkback.wire.registry import CHAT

_RETRIES = 4
_OWN = "(this probe)"


class Wanted(NamedTuple):
    """What is to be probed. An ``endpoint`` that is not in the catalogue is made, at ``base_url``, with ``dialect``.

    ``key_variable`` names the environment variable of the key, ``params`` are native parameters of every request,
    ``limit`` is the most tokens of each answer.
    """

    endpoint: str
    model: str
    base_url: str = ""
    dialect: str = CHAT
    key_variable: str = ""
    params: Mapping[str, Any] = MappingProxyType({})
    limit: int = 4096


class Prepared(NamedTuple):
    """A probe that may begin. ``made`` is the endpoint where that is new, ``row`` the id the row will have.

    ``known``: the row of ``target`` was written for it, not guessed. ``conversation`` is an id for all its requests.
    """

    wanted: Wanted
    place: EndpointConfig
    rulebook: Rulebook
    target: Target
    row: str
    made: Endpoint | None
    known: bool
    conversation: str


class Result(NamedTuple):
    """What a probe found: the row, and its TOML."""

    findings: Findings
    probed: Probed
    text: str


def prepare(wanted: Wanted) -> Prepared:
    """Where the probe goes, and whether a key is there. Raises ``NotFoundError``, ``CredentialError``, and
    ``SettingError`` for the host that stands for all that are not known.

    The row of an earlier probe does not count: what is known without it is what the new one is compared with.
    """
    files, updates = config.user_rule_files(), config.rule_update_files()
    made = None
    try:
        name = load_rulebook(files, updates).endpoint(wanted.endpoint).id
    except NotFoundError as error:
        if not wanted.base_url:
            error.next_actions += ("or give --base-url, and --dialect, for a new one",)
            raise
        made, name = _endpoint(wanted), wanted.endpoint
    if name == UNKNOWN:
        raise SettingError(
            "a row of the unknown host would hold for every host",
            details={"endpoint": UNKNOWN},
            next_actions=("give the host a name of its own in its place, and --base-url",),
        )
    row = row_id(name, wanted.model)
    files = {file: toml.without(text, "rule", row) for file, text in files.items()}
    rulebook = load_rulebook(files if made is None else {**files, _OWN: toml.endpoint_text(made)}, updates)
    place = EndpointConfig(
        model=wanted.model, endpoint=wanted.endpoint, base_url=wanted.base_url, api_key=_key(wanted.key_variable)
    )
    target = place.target(rulebook)
    kin = _kin(target.endpoint.dialect)
    if target.rule.endpoint == UNKNOWN and kin.id != UNKNOWN:
        # nothing is known of the host; what its dialect usually needs is a better guess than what chat does
        target = msgspec.structs.replace(target, rule=rulebook.rule_for(kin.id, wanted.model, config.today())[0])
    place.authenticator(rulebook).prepare()
    return Prepared(wanted, place, rulebook, target, row, made, not target.guessed, new_id())


def run(prepared: Prepared, told: Callable[[Ask], None]) -> Result:
    """Make the experiments, telling each before it is made. Raises ``ProviderError``, ``NetworkError``."""
    target, wanted = prepared.target, prepared.wanted
    client = Httpx2Transport(prepared.place.proxy, prepared.place.verify)
    try:
        asking = experiments.probe(target, dict(wanted.params), wanted.limit)
        findings = _converse(asking, prepared, told, client)
    finally:
        client.close()
    probed = conclude(findings, target.rule, prepared.row, target.endpoint.id, wanted.model, config.today())
    like = target.rule.id if packaged.rule(target.rule.id) == target.rule else ""
    text = toml.rule_text(probed, like)
    return Result(findings, probed, text)


def save(prepared: Prepared, result: Result) -> Path:
    """Put the row into the file that has it, else into one of its own; every other row stays. Returns the file.

    Raises ``RuleFileError``, and writes nothing, where the files would not be understood with it.
    """
    files = config.user_rule_files()
    own = str(config.config_dir() / "rules" / _file_name(prepared.row))
    at = next((name for name, text in files.items() if toml.holds(text, "rule", prepared.row)), own)
    text = files.get(at, "")
    if prepared.made is not None:
        text = toml.replaced(text, "endpoint", prepared.made.id, toml.endpoint_text(prepared.made))
    text = toml.replaced(text, "rule", prepared.row, result.text)
    load_rulebook({**files, at: text}, config.rule_update_files())
    file = Path(at)
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)
    return file


def row_id(endpoint: str, model: str) -> str:
    """The id of the row for a model at an endpoint."""
    return f"probed-{endpoint}-{model}"


def _file_name(row: str) -> str:
    """A name that every file system takes; two rows may share one, and then a file."""
    plain = "".join(letter if letter.isalnum() or letter in ".-_" else "-" for letter in row.lower())
    return f"probe-{plain.removeprefix('probed-')}.toml"


def _key(variable: str) -> str | None:
    """The key in ``variable``; ``None`` leaves it to the endpoint's own variables."""
    if variable and not os.environ.get(variable):
        raise CredentialError(f"the environment variable {variable} is not set")
    return os.environ[variable] if variable else None


def _endpoint(wanted: Wanted) -> Endpoint:
    """A place that is not in the catalogue, reached like others of its dialect."""
    like = _kin(wanted.dialect)
    # the key of another host is not sent to this one
    named = (wanted.key_variable,) if wanted.key_variable else ()
    signs_in = like.auth.scheme in SIGN_INS
    auth = msgspec.structs.replace(like.auth, env=named, optional=not named and not signs_in)
    return msgspec.structs.replace(
        like,
        id=wanted.endpoint,
        name=wanted.endpoint,
        base_url=wanted.base_url,
        hosts=(),
        aliases=(),
        auth=auth,
        account="",
        source=f"probed on {config.today()}",
    )


def _kin(dialect: str) -> Endpoint:
    """The unknown host if it speaks ``dialect``, else the first endpoint that does."""
    shipped = packaged.endpoints()
    speaking = [place for place in shipped if place.dialect == dialect]
    return next((place for place in speaking if place.id == UNKNOWN), speaking[0])


def _converse(
    asking: Generator[Ask, Answer, Findings], prepared: Prepared, told: Callable[[Ask], None], client: Transport
) -> Findings:
    try:
        ask = next(asking)
        while True:
            told(ask)
            ask = asking.send(_send(ask, prepared, client))
    except StopIteration as done:
        findings: Findings = done.value
        return findings


def _send(ask: Ask, prepared: Prepared, client: Transport) -> Answer:
    """The host's answer; one that may pass is waited for."""
    place = prepared.place
    headers = merge_headers(place.headers(prepared.rulebook, streams=ask.plan.streams), ask.plan.added_headers)
    headers = name_conversation(ask.plan.target.endpoint, headers, prepared.conversation)
    authenticator = place.authenticator(prepared.rulebook)
    plan = msgspec.structs.replace(ask.plan, base_headers=headers, authenticator=authenticator)
    attempt = 1
    while True:
        plan.authenticate(ask.body)
        with client.post(plan.url, plan.headers, ask.body, place.timeouts) as response:
            answer = Answer(response.status, response.headers.get("content-type", ""), b"".join(response.body))
        waits = is_retryable(answer.status) and attempt <= _RETRIES
        seconds = backoff(attempt, response.headers, now(), random()) if waits else None
        if seconds is None:
            return answer
        time.sleep(seconds)
        attempt += 1
