"""The rulebook: which endpoint a name or URL means, and which row is in force for an endpoint, a model and a day.

How a rule row is chosen, the first that applies:

1. a row of the endpoint whose pattern names the model: the pattern with most literal characters, then the newest
   ``since`` not after the day, then a person's row before the package's;
2. a row for every endpoint (``endpoint = "*"``), unless the host is unknown or the endpoint's fallback (3, 4) takes no
   reasoning at all: what a host must not see beats what a model would like;
3. the endpoint's row for every model;
4. its newest row, guessed. An endpoint without rows is treated as an unknown host, guessed as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from thinkback.errors import NotFoundError, SettingError
from thinkback.model.rule import Endpoint, ModelInfo, Overhead, Rule, Served
from thinkback.model.target import Target, model_matches
from thinkback.rules import packaged
from thinkback.rules.files import PATTERN, RuleFile, check, check_duplicates, is_date, malformed, read
from thinkback.rules.updates import ANY, Layer, beside, stacked
from thinkback.rules.urls import host_matches, literal_length, literal_pattern, normalise_url, split_address

UNKNOWN = "unknown"
_KEPT_TARGETS = 64
# A day at the end of a model's name, as providers write them.
_DATED = re.compile(r"[-@](20\d{6}|20\d\d-\d\d-\d\d|latest)$")


def load_rulebook(
    user_files: Mapping[str, str] = MappingProxyType({}), updates: Mapping[str, str] = MappingProxyType({})
) -> Rulebook:
    """The package's rules, ``updates`` on them, and a person's laid over both. Files are name to TOML text.

    A row of a person replaces the row below with the same id (rules, endpoints) or the same endpoint and model
    (models), and is added to those there are (served); rows that are like a replaced one stay as they are.
    Raises ``RuleFileError`` naming file, key path or line, and reason.
    """
    return with_layer(user_files, stacked(updates, endpoint_ids))


def endpoint_ids() -> set[str]:
    """The endpoints of the package, which updates are about."""
    return {row.id for row in packaged.endpoints()}


def with_layer(user_files: Mapping[str, str], layer: Layer) -> Rulebook:
    """The rulebook of the package, the updates in ``layer``, and a person's files. Raises as ``load_rulebook``."""
    files = {name: read(name, text, RuleFile, layer.rule) for name, text in user_files.items()}
    for name, file in files.items():
        check(name, file)
    check_duplicates(files)
    rules = tuple(row for file in files.values() for row in file.rule)
    models = tuple(row for file in files.values() for row in file.model)
    own = {(row.endpoint, row.model) for row in models}
    book = Rulebook(
        endpoints=tuple(_recognisable(row) for file in files.values() for row in file.endpoint),
        rules=(*rules, *beside(layer.rules.values(), rules)),
        models=(*models, *(row for row in layer.models if (row.endpoint, row.model) not in own)),
        served=(*(row for file in files.values() for row in file.served), *layer.served),
    )
    _check_references(files, book)
    return book


class Rulebook:
    """Endpoints, rules and models by look-up. Immutable; what it reads of the package's data it keeps."""

    def __init__(
        self,
        *,
        endpoints: tuple[Endpoint, ...],
        rules: tuple[Rule, ...],
        models: tuple[ModelInfo, ...],
        served: tuple[Served, ...] = (),
    ) -> None:
        self._own_endpoints = endpoints
        self._own_rules = rules
        self._own_models = models
        self._own_served = served
        self._replaced = frozenset(row.id for row in rules)
        self._rows: dict[str, tuple[Rule, ...]] = {}
        self._endpoints: tuple[Endpoint, ...] = ()
        self._names: dict[str, Endpoint] = {}
        self._targets: dict[tuple[str, str, str, str, str, bool], Target] = {}

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Every endpoint, a person's first."""
        if not self._endpoints:
            own = {row.id for row in self._own_endpoints}
            shipped = (row for row in packaged.endpoints() if row.id not in own)
            self._endpoints = (*self._own_endpoints, *shipped)
        return self._endpoints

    def rules(self) -> tuple[Rule, ...]:
        """Every rule row: those of the endpoints in order, then those for any endpoint."""
        return tuple(row for id in (*(place.id for place in self.endpoints()), ANY) for row in self._rules_of(id))

    def models(self) -> tuple[ModelInfo, ...]:
        """Every model row, a person's first."""
        own = {(row.endpoint, row.model) for row in self._own_models}
        return (*self._own_models, *(row for row in packaged.models() if (row.endpoint, row.model) not in own))

    def served(self, endpoint: str) -> list[str]:
        """The models that are known to be served at the endpoint with this id, by name; a person's first.

        It may serve others: what is known are the rows for lists, and facts about single models of this endpoint.
        """
        lists = (row for row in (*self._own_served, *packaged.served()) if endpoint in row.endpoint)
        facts = (row.model for row in self.models() if row.endpoint == endpoint and PATTERN.isdisjoint(row.model))
        return list(dict.fromkeys((*(model for row in lists for model in row.models), *facts)))

    def nearest(self, endpoint: str, model: str) -> list[str]:
        """The known models of the endpoint with this id whose names are most like ``model``, the likest first."""
        import difflib

        names = {name.lower(): name for name in self.served(endpoint)}
        return [names[close] for close in difflib.get_close_matches(model.lower(), names)]

    def endpoint(self, name: str) -> Endpoint:
        """The endpoint with this id or alias, upper and lower case alike; ``NotFoundError`` when there is none."""
        wanted = name.lower()
        found = self._by_name().get(wanted)
        if found is not None:
            return found
        import difflib

        known = sorted(row.id for row in self.endpoints())
        close = difflib.get_close_matches(wanted, known, cutoff=0.8)
        hint = f"did you mean {' or '.join(close)}?" if close else "`thinkback endpoints` lists them"
        raise NotFoundError(
            f"no endpoint is called {name!r}",
            details={"endpoint": name},
            next_actions=(hint, "or describe it in a rule file"),
        )

    def _by_name(self) -> dict[str, Endpoint]:
        """Endpoints by their ids and aliases in lower case; the first that has a name."""
        if not self._names:
            rows = reversed(self.endpoints())
            self._names = {word.lower(): row for row in rows for word in (row.id, *row.aliases)}
        return self._names

    def speaking(self, name: str, dialect: str) -> Endpoint:
        """The endpoint of ``name`` that speaks ``dialect``: a provider of several has one for each, called after it.

        Without one it is the endpoint of that name, whatever it speaks; ``NotFoundError`` when there is none.
        """
        place = self.endpoint(name)
        if place.dialect == dialect:
            return place
        for row in self.endpoints():
            if row.dialect == dialect and any(word.startswith(f"{place.id}-") for word in (row.id, *row.aliases)):
                return row
        return place

    def endpoint_for_url(self, base_url: str) -> Endpoint:
        """The endpoint whose host pattern names ``base_url`` most closely, else the unknown host."""
        host, path = split_address(normalise_url(base_url))
        best, most = self.endpoint(UNKNOWN), -1
        for row in self.endpoints():
            for pattern in row.hosts:
                if literal_length(pattern) > most and host_matches(pattern, host, path):
                    best, most = row, literal_length(pattern)
        return best

    def rule_for(self, endpoint_id: str, model: str, on: str) -> tuple[Rule, bool]:
        """The rule row in force on the day ``on`` (YYYY-MM-DD), and whether it was guessed."""
        _check_day(on)
        spoken = self.endpoint(endpoint_id).dialect
        own = self._spoken(endpoint_id, spoken)
        known = bool(own)
        own = own or self._spoken(UNKNOWN, spoken)
        in_force = [row for row in own if row.since <= on]
        named = _closest(in_force, model)
        if named is not None:
            return named, not known
        catch_all = [row for row in in_force if ANY in row.model]
        if in_force:
            fallback = max(catch_all or in_force, key=lambda row: (row.dialect != "", row.since))
        else:
            fallback = min(own, key=lambda row: row.since)
        if fallback.form != "none" and endpoint_id != UNKNOWN:
            rows = (row for row in self._spoken(ANY, spoken) if row.since <= on)
            shared = _closest(rows, model)
            if shared is not None:
                return shared, False
        return fallback, not (known and catch_all)

    def model_info(self, endpoint_id: str, model: str, on: str) -> ModelInfo:
        """What is known about ``model``: the endpoint's own row first, then the closest, then the newest."""
        _check_day(on)
        found = [
            ((row.endpoint != ANY, literal_length(row.model), row.since), row)
            for row in self.models()
            if row.endpoint in (endpoint_id, ANY) and row.since <= on and model_matches(model, (row.model,))
        ]
        row = max(found, key=lambda pair: pair[0])[1] if found else ModelInfo(model=model, endpoint=endpoint_id)
        row = row if row.context else _limited(row, endpoint_id, model, on)
        return row if row.overhead != Overhead() else msgspec.structs.replace(row, overhead=_overhead_of(model))

    def target(
        self,
        endpoint: str,
        model: str,
        *,
        on: str,
        base_url: str = "",
        account: str = "",
        account_known: bool = False,
    ) -> Target:
        """Where a request goes: ``endpoint`` by id or alias, ``base_url`` in place of the endpoint's own.

        Without ``account`` the one configured for the endpoint holds, which is known. Raises ``SettingError`` when
        neither gives a base URL.
        """
        key = (endpoint, model, on, base_url, account, account_known)
        found = self._targets.get(key)
        if found is None:  # asked several times a request, for the few places that a program talks to
            if len(self._targets) == _KEPT_TARGETS:
                self._targets.clear()
            found = self._targets[key] = self._target(*key)
        return found

    def _target(self, endpoint: str, model: str, on: str, base_url: str, account: str, account_known: bool) -> Target:
        place = self.endpoint(endpoint)
        url = base_url or place.base_url
        if not url:
            raise SettingError(
                f"{place.id} has no base URL of its own",
                details={"endpoint": place.id},
                next_actions=("give the base URL of your resource or server",),
            )
        rule, guessed = self.rule_for(place.id, model, on)
        return Target(
            endpoint=place,
            base_url=normalise_url(url),
            model=model,
            rule=rule,
            info=self.model_info(place.id, model, on),
            account=account or place.account,
            account_known=account_known if account else bool(place.account),
            guessed=guessed,
            on=on,
        )

    def _spoken(self, endpoint_id: str, dialect: str) -> tuple[Rule, ...]:
        """The rows of one endpoint that hold for ``dialect``."""
        return tuple(row for row in self._rules_of(endpoint_id) if row.dialect in ("", dialect))

    def _rules_of(self, endpoint_id: str) -> tuple[Rule, ...]:
        """The rows of one endpoint, a person's first."""
        if endpoint_id not in self._rows:
            own = (row for row in self._own_rules if row.endpoint == endpoint_id)
            shipped = (row for row in packaged.rules(endpoint_id) if row.id not in self._replaced)
            self._rows[endpoint_id] = (*own, *shipped)
        return self._rows[endpoint_id]


def _closest(rows: Iterable[Rule], model: str) -> Rule | None:
    """The row that names ``model`` with most literal characters, then the newest, then the first."""
    best: tuple[int, str] = (-1, "")
    found: Rule | None = None
    for row in rows:
        for pattern in row.model:
            rank = (literal_length(pattern), row.since)
            if pattern != ANY and rank > best and model_matches(model, (pattern,)):
                best, found = rank, row
    return found


def _recognisable(row: Endpoint) -> Endpoint:
    """A person's endpoint, recognised by its own base URL where no hosts are given."""
    if row.hosts or not row.base_url:
        return row
    return msgspec.structs.replace(row, hosts=(literal_pattern(normalise_url(row.base_url)),))


def _limited(row: ModelInfo, endpoint: str, model: str, on: str) -> ModelInfo:
    """``row`` with the limit that a catalogue has of the model, also under its name without a date."""
    known, name = packaged.limits(endpoint), model.lower()
    limit = known.get(name) or known.get(_DATED.sub("", name))
    if limit is None or limit.since > on:
        return row
    source = f"{row.source}; the context: {limit.source}" if row.source else limit.source
    return msgspec.structs.replace(row, context=limit.tokens, source=source)


def _overhead_of(model: str) -> Overhead:
    """The tokens that are known to be added to requests for ``model``."""
    return next((found for patterns, found in packaged.overheads() if model_matches(model, patterns)), Overhead())


def _check_day(on: str) -> None:
    if not is_date(on):
        raise SettingError(f"{on!r} is not a date (YYYY-MM-DD)", details={"on": on})


def _check_references(files: Mapping[str, RuleFile], book: Rulebook) -> None:
    """Refuse names that two endpoints share, and rows about endpoints that do not exist."""
    if not files:
        return
    names = Counter(name.lower() for row in book.endpoints() for name in {row.id, *row.aliases})
    ids = {row.id for row in book.endpoints()} | {ANY}
    for name, file in files.items():
        for at, place in enumerate(file.endpoint):
            taken = [word for word in (place.id, *place.aliases) if names[word.lower()] > 1]
            if taken:
                raise malformed(name, f"endpoint[{at}]", f"another endpoint is called {taken[0]!r} too")
        rows = (
            *((f"rule[{at}].endpoint", rule.endpoint) for at, rule in enumerate(file.rule)),
            *((f"model[{at}].endpoint", info.endpoint) for at, info in enumerate(file.model)),
            *((f"served[{at}].endpoint", id) for at, row in enumerate(file.served) for id in row.endpoint),
        )
        for key, id in rows:
            if id not in ids:
                raise malformed(name, key, f"no endpoint has the id {id!r}")
