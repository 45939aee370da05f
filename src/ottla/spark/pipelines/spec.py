"""A pipeline as its folder describes it: `spark-pipeline.yml`, which Spark's own `spark-pipelines` reads too, and `ottla.yml`.

`spark-pipelines` refuses keys that it does not know, so what is Ottla's alone (schedule, group, sources, sinks) is in
a second file:

    schedule: every 30s
    group: shop
    sources:
      orders: {subscribe: orders, startingOffsets: earliest}
    sinks:
      large_orders: {topic: large-orders}

    schema_registry: http://localhost:8081

A source becomes a temporary view and a sink a sink of the pipeline (`connections.py`). `format` is ottla if it is left out;
`schema` and `streaming` are ours; all other keys are options of the format. For topics, `format` may say how values are
written: avro, json or protobuf, with schemas of `schema_registry`. `environments.py` says how both files get values
that differ between environments: overlays, variables, secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ottla.errors.texts import near_words
from ottla.spark.options import KAFKA_PREFIX
from ottla.spark.pipelines.environments import (
    Environment,
    Values,
    environment_of_process,
    masked,
    merged,
    overlay_file,
    overlay_of_setting,
)
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.hooks import FailureHook, read_hook
from ottla.spark.registry.options import KINDS, URL, USER_INFO

ONCE, EVERY, CONTINUOUS = "once", "every", "continuous"
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_UNITS = {
    "s": "s", "sec": "s", "second": "s", "seconds": "s",
    "m": "m", "min": "m", "minute": "m", "minutes": "m",
    "h": "h", "hour": "h", "hours": "h",
}  # fmt: skip
_EVERY = re.compile(r"every\s+(\d+(?:\.\d+)?)\s*([a-z]+)")


@dataclass(frozen=True)
class Schedule:
    """How often the flows of a pipeline look for new records."""

    kind: str = ONCE
    interval_s: float = 0.0
    """The time from the begin of one batch to the begin of the next, for `every`."""

    def __str__(self) -> str:
        return f"every {self.interval_s:g}s" if self.kind == EVERY else self.kind

    def trigger(self) -> dict[str, object]:
        """The arguments of `DataStreamWriter.trigger`."""
        if self.kind == ONCE:
            return {"availableNow": True}
        return {"processingTime": f"{round(self.interval_s * 1000)} milliseconds"}


def parse_schedule(text: object) -> Schedule:
    """A schedule, or a `PipelineError` that says how one is written."""
    words = str(text).strip().lower()
    if words in (ONCE, CONTINUOUS):
        return Schedule(words)
    found = _EVERY.fullmatch(words)
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None or float(found[1]) <= 0:
        raise PipelineError(f"schedule is {text!r}: it must be once, continuous, or every with a time, such as every 30s")
    return Schedule(EVERY, float(found[1]) * _SECONDS[unit])


SPEC_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
OTTLA_NAMES = ("ottla.yml", "ottla.yaml")
SPEC_KEYS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
OTTLA_KEYS = ("schedule", "group", "packages", "renamed", "on_failure", "schema_registry", "sources", "sinks")
ONCE_ONLY = Schedule()
BOOTSTRAP = "kafka.bootstrap.servers"
"""The key of `configuration` with the cluster's address: for every source and sink that names no other."""


@dataclass(frozen=True)
class Connection:
    """A source or a sink of `ottla.yml`."""

    name: str
    format: str
    options: dict[str, str] = field(repr=False)
    schema: str | None = None
    is_streaming: bool = True


@dataclass(frozen=True)
class Spec:
    """What the YAML files of a pipeline say."""

    folder: Path
    name: str
    storage: str
    configuration: dict[str, str] = field(default_factory=dict, repr=False)
    libraries: tuple[str, ...] = ()
    catalog: str | None = None
    database: str | None = None
    schedule: Schedule = ONCE_ONLY
    group: str | None = None
    """The consumer group that shows how far the flows have read."""
    packages: tuple[str, ...] = ()
    """Installed packages that the pipeline's functions import: shipped to the workers of a cluster."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Old and new names of flows: the new one continues with the checkpoint of the old one."""
    sources: tuple[Connection, ...] = ()
    sinks: tuple[Connection, ...] = ()
    registry_options: dict[str, str] = field(default_factory=dict, repr=False)
    """Where the schema registry is: options for every topic whose keys or values have schemas."""
    environment: str | None = None
    """The overlay that was merged in: prod for `ottla.prod.yml`."""
    on_failure: FailureHook | None = None
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Values that no output, error or log may show."""

    backfill: str | None = None
    """The id of a backfill, which has checkpoints, log and lock of its own."""

    def masked(self, text: str) -> str:
        """A text without the pipeline's secrets."""
        return masked(text, self.secrets)

    @property
    def state(self) -> str:
        """Where checkpoints, state and tables are kept: a path, or a URI of another file system."""
        return f"{self.storage.rstrip('/')}/ottla"

    @property
    def home(self) -> str:
        """Where checkpoints, log and lock are: `state`, or a folder in it for a backfill."""
        return self.state if self.backfill is None else f"{self.state}/backfills/{self.backfill}"

    @property
    def local_home(self) -> Path | None:
        """`home` as a folder of this machine; None if it is on another file system."""
        parts = urlsplit(self.home)
        return Path(parts.path) if parts.scheme in ("", "file") else None

    @property
    def local_state(self) -> Path | None:
        """`state` as a folder of this machine; None if it is on another file system."""
        parts = urlsplit(self.state)
        return Path(parts.path) if parts.scheme in ("", "file") else None

    @property
    def client_options(self) -> dict[str, str]:
        """The settings of clients in the configuration: its keys that begin with `kafka.`."""
        return {key: value for key, value in self.configuration.items() if key.startswith(KAFKA_PREFIX)}

    def files(self) -> list[Path]:
        """The Python and SQL files, sorted: the order does not depend on the file system."""
        found = []
        for pattern in self.libraries:
            matches = self.folder.glob(f"{pattern}/*" if pattern.endswith("/**") else pattern)
            each = sorted(path for path in matches if path.is_file() and "__pycache__" not in path.parts)
            if not each:
                raise PipelineError(f"libraries of {SPEC_NAMES[0]} includes {pattern}, but {self.folder} has no such file")
            found += each
        for path in found:
            if path.suffix not in (".py", ".sql"):
                raise PipelineError(f"{path} is neither a .py nor a .sql file: move it out of the folders that libraries names")
        return list(dict.fromkeys(found))

    def with_clients(self, over: Mapping[str, str], under: Mapping[str, str]) -> Spec:
        """The same pipeline with settings of clients, by Kafka's names, over its own ones and under them."""
        above, below = ({KAFKA_PREFIX + name: value for name, value in each.items()} for each in (over, under))

        def without(each: Connection) -> Connection:
            return replace(each, options={key: value for key, value in each.options.items() if key not in above})

        words = ("password", "jaas", "keystore.key")
        secrets = {value for key, value in (above | below).items() if any(word in key for word in words)}
        return replace(
            self,
            configuration={**below, **self.configuration, **above},
            sources=tuple(map(without, self.sources)),
            sinks=tuple(map(without, self.sinks)),
            secrets=self.secrets | secrets,
        )

    def with_bootstrap(self, servers: str | None) -> Spec:
        """The same pipeline with another cluster; unchanged for None."""
        if servers is None:
            return self

        def moved(each: Connection) -> Connection:
            # An address of its own would win over the one that was asked for.
            return replace(each, options={key: value for key, value in each.options.items() if key != BOOTSTRAP})

        return replace(
            self,
            configuration={**self.configuration, BOOTSTRAP: servers},
            sources=tuple(map(moved, self.sources)),
            sinks=tuple(map(moved, self.sinks)),
        )


def read_spec(place: str | Path, environment: Environment | None = None) -> Spec:
    """The pipeline of a folder, or of its `spark-pipeline.yml`; without an environment, in the one that OTTLA_ENV names."""
    path = Path(place)
    if path.is_dir():
        candidates = [path / name for name in SPEC_NAMES if (path / name).is_file()]
        if not candidates:
            raise PipelineError(f"{path} has no {SPEC_NAMES[0]}: `ottla pipeline init NAME` makes a pipeline to begin with")
        path = candidates[0]
    elif not path.is_file():
        raise PipelineError(f"there is no {path}: name the folder of a pipeline, or its {SPEC_NAMES[0]}")
    wanted = environment_of_process() if environment is None else environment
    folder = path.parent.resolve()
    given = _mapping(path, _load(path))
    _check_keys(path, given, SPEC_KEYS)
    own = next((path.parent / name for name in OTTLA_NAMES if (folder / name).is_file()), None)
    if own is not None:
        ours = _mapping(own, _load(own) or {})
        _check_keys(own, ours, OTTLA_KEYS)
        given |= ours
    given, label = _overlaid(given, path.parent, wanted)
    values = Values(folder, wanted)
    own_label = f"{own or path.parent / OTTLA_NAMES[0]}{label}"
    found = {
        key: values.replaced(own_label if key in OTTLA_KEYS else f"{path}{label}", {key: value})[key]
        for key, value in given.items()
    }
    made = replace(_spark_part(f"{path}{label}", found, folder), environment=wanted.name, secrets=frozenset(values.secrets))
    try:
        return _with_ottla_part(own_label, found, made)
    except PipelineError as error:
        raise PipelineError(made.masked(str(error))) from None


def _overlaid(given: dict[str, Any], folder: Path, environment: Environment) -> tuple[dict[str, Any], str]:
    """The keys of both files with the overlay and `--set`, and what errors add to the names of the files."""
    label = ""
    known = (*SPEC_KEYS, *OTTLA_KEYS)
    if environment.name is not None:
        path = overlay_file(folder, environment.name)
        above = _mapping(path, _load(path) or {})
        _check_keys(path, above, known)
        given, label = merged(given, above), f" with {path.name}"
    for text in environment.settings:
        given = merged(given, overlay_of_setting(text, given, known))
    return given, label


def _spark_part(path: str, given: Mapping[str, Any], folder: Path) -> Spec:
    for key in ("name", "storage"):
        if not isinstance(given.get(key), str) or not given[key].strip():
            raise PipelineError(f"{path} has no {key}: add a line such as {key}: {'orders' if key == 'name' else 'storage'}")
    return Spec(
        folder=folder,
        name=given["name"],
        storage=_storage(folder, given["storage"]),
        configuration=_texts(path, "configuration", given.get("configuration") or {}),
        libraries=_libraries(path, given.get("libraries")),
        catalog=given.get("catalog"),
        database=given.get("database", given.get("schema")),
    )


def _with_ottla_part(path: str, given: Mapping[str, Any], spec: Spec) -> Spec:
    try:
        schedule = parse_schedule(given.get("schedule", "once"))
        hook = read_hook(given.get("on_failure"))
    except PipelineError as error:
        raise PipelineError(f"{path}: {error}") from None
    group = given.get("group")
    if group is not None and not isinstance(group, str):
        raise PipelineError(f"{path}: group is {group!r}: write the name of a consumer group, in quotes")
    return replace(
        spec,
        schedule=schedule,
        group=group,
        on_failure=hook,
        packages=_packages(path, given.get("packages") or []),
        registry_options=_registry(path, given.get("schema_registry")),
        renamed=_texts(path, "renamed", given.get("renamed") or {}, "old_name: new_name"),
        sources=_connections(path, "sources", given.get("sources") or {}, spec.folder),
        sinks=_connections(path, "sinks", given.get("sinks") or {}, spec.folder),
    )


def _load(path: Path) -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise PipelineError("pipelines need PyYAML, which is not installed: pip install 'ottla[spark]'") from None
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 1}"
        raise PipelineError(f"{path} is no YAML{where}: {getattr(error, 'problem', None) or error}") from None


def _mapping(path: Path, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise PipelineError(f"{path} must have lines such as name: orders, not {type(found).__name__}")
    return {str(key): value for key, value in found.items()}


def _check_keys(path: Path, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            near = near_words(key, known, cutoff=0.6)
            place = f"; it belongs in {OTTLA_NAMES[0]}" if key in OTTLA_KEYS else ""
            hint = f"; did you mean {near[0]}?" if near and not place else place
            raise PipelineError(f"{path} has the key {key}, which is none of {', '.join(known)}{hint}")


def _storage(folder: Path, text: str) -> str:
    """The storage as a URI; a path without a scheme is relative to the folder."""
    parts = urlsplit(text)
    if parts.scheme in ("", "file"):
        return str((folder / parts.path).resolve())
    return text


def _libraries(path: str, given: Any) -> tuple[str, ...]:
    example = "libraries must be a list such as [{glob: {include: transformations/**}}]"
    if not isinstance(given, list) or not given:
        raise PipelineError(f"{path}: {example}")
    found = []
    for each in given:
        include = each.get("glob", {}).get("include") if isinstance(each, dict) and isinstance(each.get("glob"), dict) else None
        if not isinstance(include, str):
            raise PipelineError(f"{path}: {example}, not {each}")
        if any(letter in include.removesuffix("/**") for letter in "*?["):
            raise PipelineError(f"{path}: libraries includes {include}: it may only be a file, or a folder with /** after it")
        found.append(include)
    return tuple(found)


def _packages(path: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise PipelineError(f"{path}: packages must be a list of names such as [requests], not {given}")
    return tuple(given)


def _texts(path: str, key: str, given: Any, example: str = "spark.sql.shuffle.partitions: '4'") -> dict[str, str]:
    if not isinstance(given, dict):
        raise PipelineError(f"{path}: {key} must have lines such as {example}")
    for name, value in given.items():
        # spark-pipelines refuses all but text; what it refuses is an error here too.
        if not isinstance(name, str) or not isinstance(value, str):
            raise PipelineError(f"{path}: {name} in {key} is {value!r}: write it in quotes, as text")
    return dict(given)


def _registry(path: str, given: Any) -> dict[str, str]:
    """`schema_registry: http://…`, or with a login, as options of topics."""
    if given is None:
        return {}
    found = {"url": given} if isinstance(given, str) else given
    if not isinstance(found, dict) or not isinstance(found.get("url"), str) or set(found) - {"url", "user_info"}:
        raise PipelineError(
            f"{path}: schema_registry must be an address such as http://localhost:8081, or {{url: …, user_info: user:password}}"
        )
    names = {"url": URL, "user_info": USER_INFO}
    return {names[name]: str(value) for name, value in found.items()}


TOPIC_OPTIONS = ("subscribe", "subscribePattern", "assign", "topic")


def _connections(path: str, key: str, given: Any, folder: Path) -> tuple[Connection, ...]:
    if not isinstance(given, dict):
        raise PipelineError(f"{path}: {key} must have a name and options for each, such as orders: {{subscribe: orders}}")
    found = []
    for name, options in given.items():
        if not isinstance(options, dict) or not options:
            raise PipelineError(f"{path}: {name} in {key} has no options: write some, such as {name}: {_example(key)}")
        rest = dict(options)
        kind, schema, streaming = rest.pop("format", "ottla"), rest.pop("schema", None), rest.pop("streaming", True)
        streaming = {"true": True, "false": False}.get(streaming, streaming) if isinstance(streaming, str) else streaming
        if not isinstance(streaming, bool):
            raise PipelineError(f"{path}: streaming of {name} is {streaming!r}: it must be true or false")
        texts = {str(option): _text(value) for option, value in rest.items()}
        if kind in KINDS and any(option in texts for option in TOPIC_OPTIONS):
            texts["value.format"], kind = str(kind), "ottla"
        if "path" in texts and not urlsplit(texts["path"]).scheme:
            texts["path"] = str((folder / texts["path"]).resolve())
        found.append(Connection(str(name), str(kind), texts, None if schema is None else str(schema), streaming))
    return tuple(found)


def _example(key: str) -> str:
    return "{subscribe: orders}" if key == "sources" else "{topic: large-orders}"


def _text(value: Any) -> str:
    """An option's value as Spark wants it: text. YAML's true is Spark's true, lists and mappings are JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)
