"""Counts of bad data: what decoding and expectations find in the rows of a flow, counted by Spark in the same pass.

Each check is an `observe()` of Spark's: no second job, one report per batch. A report describes itself:

    ottla.decode/AT    rows, bad, mode, topic, reasons, example, drifted, fields, present, nulls
    ottla.expect/AT    rows, and for each expectation `ACTION:NAME`, `condition:NAME`, `topic:NAME` and `example:NAME`

AT is the flow or view whose rows are checked. A view is computed by every flow that reads it, so each of them counts.

A count is over the rows of the batches that ended. A batch that is tried again replaces what it counted before. A count differs
from what is in the sink in two cases: a stage that Spark repeats because an executor was lost before a shuffle counts its rows
again, and a batch that ended in the moment in which the process was killed has left no count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from threading import Thread
from typing import Any

from ottla.errors.texts import counted

DECODE, DRIFT, EXPECT, NULLS = "decode", "drift", "expect", "nulls"
DECODE_PREFIX, EXPECT_PREFIX = "ottla.decode/", "ottla.expect/"
WARN, DROP, FAIL, DEAD_LETTER = "warn", "drop", "fail", "dead letter"
ACTIONS = (WARN, DROP, FAIL, DEAD_LETTER)
REASONS_SHOWN = 5
OBSERVATION_TIMEOUT_S = 2.0
NEVER_NULL = 1000
"""After so many records that all had a field, one without it is drift."""


@dataclass(frozen=True)
class Check:
    """What one check has found."""

    at: str
    """The flow or view whose rows are checked."""
    kind: str
    """`decode`, `drift` (what differs from the schema or from before), `expect`, or `nulls`, which only counts."""
    name: str = ""
    """The expectation's name; of `drift`, a field that is null and was not before."""
    action: str = WARN
    rows: int = 0
    bad: int = 0
    condition: str | None = None
    topic: str | None = None
    """Where dead letters go."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    example: str | None = None
    examples: Mapping[str, str] = field(default_factory=dict)
    """For each reason, where one of its records is."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the check within a flow."""
        return self.at, self.kind, self.name

    def plus(self, other: Check, sign: int = 1) -> Check:
        """Both together, or with -1 what is left without the other."""
        reasons = dict(self.reasons)
        for reason, count in other.reasons.items():
            reasons[reason] = reasons.get(reason, 0) + sign * count
        return replace(
            other if sign > 0 else self,
            rows=self.rows + sign * other.rows,
            bad=self.bad + sign * other.bad,
            reasons={reason: count for reason, count in reasons.items() if count > 0},
            example=self.example or other.example,
            examples={**other.examples, **self.examples},
        )

    def as_json(self) -> dict[str, Any]:
        """For --json and for the file of counts."""
        return asdict(self)

    def text(self) -> str:
        """One sentence about what was found."""
        several = sorted(self.reasons.items(), key=lambda each: (-each[1], each[0]))
        named = ", ".join(f"{reason} ({self._counted(reason, count)})" for reason, count in several[:REASONS_SHOWN])
        named += f" and {len(several) - REASONS_SHOWN} more" if len(several) > REASONS_SHOWN else ""
        example = f"; such as {self.example}" if self.example else ""
        if self.kind == DRIFT and self.name:
            found = f"{self.at}: {self.name} is null or missing in {self.bad:,} of {counted(self.rows, 'record')}"
            return f"{found}, and was in every record before{f'; the first is {self.example}' if self.example else ''}"
        if self.kind == DRIFT:
            return f"{self._part('record')} {'differs' if self.bad == 1 else 'differ'} from the schema: {named}"
        if self.kind == DECODE:
            return f"{self._part('record')} could not be decoded {self._fate()}{f': {named}' if named else ''}{example}"
        broke = f"{self._part('row')} {'does' if self.bad == 1 else 'do'} not meet the expectation {self.name}"
        return f"{broke} ({self.condition}) {self._fate()}{example}"

    def masked(self, mask: Callable[[str], str]) -> Check:
        """Without what `mask` takes out of texts."""
        return replace(
            self,
            name=mask(self.name),
            condition=None if self.condition is None else mask(self.condition),
            topic=None if self.topic is None else mask(self.topic),
            example=None if self.example is None else mask(self.example),
            reasons={mask(reason): count for reason, count in self.reasons.items()},
            examples={mask(reason): mask(place) for reason, place in self.examples.items()},
        )

    def _counted(self, reason: str, count: int) -> str:
        place = self.examples.get(reason)
        return f"{count:,}, {place}" if place else f"{count:,}"

    def _part(self, noun: str) -> str:
        return f"{self.at}: {self.bad:,} of {counted(self.rows, noun)}"

    def _fate(self) -> str:
        was = "was" if self.bad == 1 else "were"
        if self.action == DEAD_LETTER:
            return f"and {'is' if self.bad == 1 else 'are'} in the topic {self.topic}"
        return {DROP: f"and {was} dropped", FAIL: f"and {was} refused"}.get(self.action, f"and {was} kept")


Checks = dict[tuple[str, str, str], Check]


def added(into: Checks, found: Iterable[Check]) -> None:
    """Add what a batch has found."""
    for each in found:
        into[each.key] = into[each.key].plus(each) if each.key in into else each


def checks_of(observed: Mapping[str, Any] | None) -> list[Check]:
    """The checks in the `observedMetrics` of a progress report, or in the values of `Observation`s by name."""
    found: list[Check] = []
    for name, row in (observed or {}).items():
        values = row if isinstance(row, Mapping) else row.asDict(recursive=True)
        if name.startswith(DECODE_PREFIX):
            found += _decoded(name.removeprefix(DECODE_PREFIX), values)
        elif name.startswith(EXPECT_PREFIX):
            found += _expected(name.removeprefix(EXPECT_PREFIX), values)
    return found


def _decoded(at: str, values: Mapping[str, Any]) -> list[Check]:
    mode = {"drop": DROP, "fail": FAIL, "dead_letters": DEAD_LETTER}.get(values.get("mode") or "", WARN)
    rows = int(values.get("rows") or 0)
    made = Check(at, DECODE, "", mode, rows, int(values.get("bad") or 0), None, values.get("topic"))
    reasons, places = _top(values.get("reasons"))
    found = [replace(made, reasons=reasons, examples=places, example=values.get("example"))]
    if values.get("drifted") is not None:
        by_field: dict[str, int] = {}
        places = {}
        fields, places_of = _top(values.get("fields"))
        for texts, count in fields.items():
            for each in texts.split(", "):
                by_field[each] = by_field.get(each, 0) + count
                if texts in places_of:
                    places.setdefault(each, places_of[texts])
        found.append(Check(at, DRIFT, "", WARN, rows, int(values["drifted"]), reasons=by_field, examples=places))
    if values.get("present") is not None:
        nulls, places = _top(values.get("nulls"))
        found.append(Check(at, NULLS, "", WARN, int(values["present"]), reasons=nulls, examples=places))
    return found


def _expected(at: str, values: Mapping[str, Any]) -> list[Check]:
    found = []
    for column, count in values.items():
        action, _, name = column.partition(":")
        if action in ACTIONS:
            words: dict[str, Any] = {each: values.get(f"{each}:{name}") for each in ("condition", "topic", "example")}
            found.append(Check(at, EXPECT, name, action, int(values.get("rows") or 0), int(count or 0), **words))
    return found


def _top(items: Any) -> tuple[dict[str, int], dict[str, str]]:
    """The counts of texts, the largest first, and where a record of each is."""
    found: dict[str, int] = {}
    places: dict[str, str] = {}
    for each in items or ():
        item, count, place = (each[name] for name in ("item", "count", "example"))
        if item and count:
            found[item] = found.get(item, 0) + int(count)
            if place:
                places.setdefault(item, place)
    return dict(sorted(found.items(), key=lambda each: -each[1])), places


@dataclass
class Watch:
    """The flow whose query is being made, and what its checks are."""

    flow: str
    names: list[str] = field(default_factory=list)
    observations: list[Any] = field(default_factory=list)
    """Of DataFrames that are no streams: Spark reports these to an object instead of to the query's progress."""
    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    """Dead-letter topics, with the settings of their client."""


_watch: ContextVar[Watch | None] = ContextVar("ottla_watch", default=None)


@contextmanager
def watching(flow: str) -> Iterator[Watch]:
    """While this lasts, checks are counted for a flow."""
    made = Watch(flow)
    token = _watch.set(made)
    try:
        yield made
    finally:
        _watch.reset(token)


def current() -> Watch | None:
    """The flow whose query is being made; None outside of a pipeline."""
    return _watch.get()


def observe(df: Any, prefix: str, columns: list[Any], label: str | None = None) -> Any:
    """The DataFrame with a check that is counted; as it is outside of pipelines, unless a `label` says whose rows they are."""
    watch = _watch.get()
    if watch is None and label is None:
        return df
    name = _free_name(prefix + (watch.flow if watch is not None else str(label)), watch)
    if df.isStreaming or watch is None:
        return df.observe(name, *columns)
    from pyspark.sql import Observation

    observation = Observation(name)
    watch.observations.append((name, observation))
    return df.observe(observation, *columns)


def _free_name(name: str, watch: Watch | None) -> str:
    if watch is None:
        return name
    number = sum(each == name or each.startswith(f"{name} ") for each in watch.names) + 1
    made = name if number == 1 else f"{name} {number}"
    watch.names.append(made)
    return made


def results(observations: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """What was counted in batch queries that have ended. A check that Spark left out of the plan has no result."""
    found: dict[str, Any] = {}

    def take(name: str, observation: Any) -> None:
        found[name] = observation.get

    for name, observation in observations:
        # `get` waits for ever if the optimizer has removed the check, as it does for an empty table.
        thread = Thread(target=take, args=(name, observation), daemon=True)
        thread.start()
        thread.join(OBSERVATION_TIMEOUT_S)
    return dict(found)


class CountsFile:
    """The counts of a flow over all runs: `counts/FLOW.json` in the storage of the pipeline.

    Only the last batch of a query can be repeated. Its counts are kept apart, and are replaced if it comes again.
    """

    def __init__(self, text: str | None) -> None:
        """`text` is what the file holds; None if it is not there."""
        self._query = ""
        self._batch = -1
        self.totals: Checks = {}
        self._last: list[Check] = []
        try:
            stored = json.loads(text or "")
            self._query, self._batch = stored["query"], stored["batch"]
            added(self.totals, (Check(**each) for each in stored["totals"]))
            self._last = [Check(**each) for each in stored["last"]]
        except (ValueError, KeyError, TypeError):
            pass  # counts inform; a file that cannot be read is begun again

    def added(self, query: str, batch: int, found: list[Check], began: set[tuple[str, str]]) -> str | None:
        """The text of the file with the counts of a batch; None if it has them.

        `found` gets a check for each field that is null and was in every record before, and `began` remembers it for the rest
        of the run.
        """
        if query != self._query:
            self.totals, self._last, self._batch = {}, [], -1
        if batch < self._batch:
            return None
        if batch == self._batch:
            for each in self._last:
                self.totals[each.key] = self.totals[each.key].plus(each, -1)
        found += [each for check in found if check.kind == NULLS for each in self._new_nulls(check, began)]
        added(self.totals, found)
        self._query, self._batch, self._last = query, batch, found
        return json.dumps(
            {
                "query": query,
                "batch": batch,
                "totals": [each.as_json() for each in self.totals.values()],
                "last": [each.as_json() for each in found],
            }
        )

    def _new_nulls(self, check: Check, began: set[tuple[str, str]]) -> Iterator[Check]:
        before = self.totals.get(check.key)
        for name, count in check.reasons.items():
            if before is not None and before.rows >= NEVER_NULL and name not in before.reasons:
                began.add((check.at, name))
            if (check.at, name) in began:
                yield Check(check.at, DRIFT, name, WARN, check.rows, count, example=check.examples.get(name))


class WatchedQuery:
    """A flow's function, with its checks counted and its dead letters sent to the pipeline's cluster."""

    def __init__(self, flow: str, function: Callable[[], Any], context: Callable[[], Any]) -> None:
        self._flow = flow
        self._function = function
        self._context = context
        self.watch = Watch(flow)
        """The checks of the last call."""

    def __call__(self) -> Any:
        """Make the DataFrame."""
        with watching(self._flow) as self.watch, self._context():
            return self._function()
