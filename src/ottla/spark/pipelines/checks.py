"""Checks of a pipeline that need no Spark: options of topics, and whether the cluster has the topics.

They return sentences instead of raising, so that a person sees all mistakes at once. The cluster is asked by a function of the
caller, who knows how long a person will wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ottla.env.real.tls_errors import protocol_mismatch
from ottla.errors import ConfigError, KafkaError
from ottla.errors.texts import near_words
from ottla.spark.errors import SparkOptionError
from ottla.spark.options import KAFKA_PREFIX
from ottla.spark.pipelines.connections import with_address
from ottla.spark.pipelines.spec import BOOTSTRAP, OTTLA_NAMES, SPEC_NAMES, Connection, Spec
from ottla.spark.sink.options import sink_options
from ottla.spark.source.options import source_options

NAMES_SHOWN, NEAR_SHOWN = 8, 3

ListTopics = Callable[[Mapping[str, str]], Collection[str]]
"""The topics of the cluster of a client with these settings. Raises a `KafkaError` if it does not answer."""


def option_problems(spec: Spec) -> list[str]:
    """Mistakes in the options of the topics that `ottla.yml` names."""
    found = []
    for kind, connections in (("source", spec.sources), ("sink", spec.sinks)):
        for each in connections:
            if each.format == "ottla":
                problem = _option_problem(kind, each, spec)
                found += [f"{OTTLA_NAMES[0]}: {each.name}: {problem}"] if problem else []
    names = [each.name for each in (*spec.sources, *spec.sinks)]
    if spec.group is not None and BOOTSTRAP not in spec.configuration:
        found.append(f"{OTTLA_NAMES[0]}: group {spec.group} needs {BOOTSTRAP} in the configuration of {SPEC_NAMES[0]}")
    return found + [
        f"{OTTLA_NAMES[0]}: {name} is both a source and a sink: give them two names"
        for name in sorted(set(names))
        if names.count(name) > 1
    ]


def _option_problem(kind: str, connection: Connection, spec: Spec) -> str | None:
    options = with_address(connection, spec)
    try:
        if kind == "source":
            source_options(options, is_streaming=connection.is_streaming)
        else:
            sink_options(options, is_streaming=True)
    except SparkOptionError as error:
        return str(error)
    return None


def topics_wanted(spec: Spec) -> dict[str, dict[str, str]]:
    """The topics that `ottla.yml` names, by the part that names them: `source orders` → topics and client settings."""
    wanted: dict[str, dict[str, str]] = {}
    for connection in (*spec.sources, *spec.sinks):
        if connection.format == "ottla":
            for topic in topics_of(connection.options):
                wanted[topic] = with_address(connection, spec)
    return wanted


def topics_of(options: Mapping[str, str]) -> list[str]:
    """The topics that options name in full: not those of a pattern."""
    lowered = {key.lower(): value for key, value in options.items()}
    text = lowered.get("subscribe") or lowered.get("topic") or ""
    return [name.strip() for name in text.split(",") if name.strip()]


def by_cluster(wanted: Mapping[str, Mapping[str, str]]) -> list[tuple[dict[str, str], list[str]]]:
    """The settings of the clients that a pipeline needs, and the topics that each asks for."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for topic, options in wanted.items():
        client = {key.removeprefix(KAFKA_PREFIX): value for key, value in options.items() if key.startswith(KAFKA_PREFIX)}
        found.setdefault(tuple(sorted(client.items())), []).append(topic)
    return [(dict(client), topics) for client, topics in found.items()]


def topic_problems(wanted: Mapping[str, Mapping[str, str]], list_topics: ListTopics) -> list[str]:
    """Topics that their cluster does not have, and clusters that do not answer."""
    found: list[str] = []
    for client, topics in by_cluster(wanted):
        servers = client.get("bootstrap.servers", "")
        try:
            there = set(list_topics(client))
        except ConfigError as error:
            found.append(str(error))
            continue
        except (KafkaError, OSError) as error:
            found.append(f"the cluster at {servers} does not answer: {protocol_mismatch(client) or error}")
            continue
        found += [f"there is no topic {topic} at {servers}: {_hint(topic, there)}" for topic in topics if topic not in there]
    return found


def _hint(topic: str, there: Iterable[str]) -> str:
    names = sorted(name for name in there if not name.startswith("__"))
    near = near_words(topic, names, count=NEAR_SHOWN, cutoff=0.7)
    if near:
        return f"did you mean {' or '.join(near)}? If not, create it: ottla topics create {topic}"
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    listed = f"there are {', '.join(names[:NAMES_SHOWN])}{more}" if names else "there is no topic yet"
    return f"create it with `ottla topics create {topic}`; {listed}"
