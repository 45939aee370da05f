"""Selects the topics of an action: by exact names, or by Kafka's `--topic`, which is a regular expression."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_topics
from ottla.errors import OttlaError

F = TypeVar("F", bound=Callable[..., Any])
_IS_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class NoSuchTopic(OttlaError):
    """No topic has the name that the user gave."""


def pattern_of(text: str) -> re.Pattern[str]:
    """A regular expression for names of topics; commas separate several, as in Kafka's tools."""
    try:
        return re.compile(text.strip().replace(",", "|").replace(" ", "").strip("\"'"))
    except re.error as error:
        raise click.UsageError(f"--topic: {text!r} is neither a name nor a regular expression: {error}") from None


def topic_arguments(function: F) -> F:
    """Add the argument NAMES, and Kafka's `--topic`."""
    function = click.option(
        "--topic",
        "pattern",
        multiple=True,
        callback=lambda ctx, param, values: ",".join(values) if values else None,
        metavar="REGEX",
        shell_complete=complete_topics,
        help="Kafka's spelling of NAMES; a regular expression. Repeatable.",
    )(function)
    return click.argument("names", nargs=-1, metavar="[NAMES]...", shell_complete=complete_topics)(function)


def choose(topics: Iterable[str], names: Sequence[str], pattern: str | None, missing_is_fine: bool = False) -> list[str]:
    """The chosen topics, sorted; all of them without names and pattern."""
    known = sorted(topics)
    if names and pattern is not None:
        raise click.UsageError("name topics as arguments or with --topic, not both")
    if pattern is not None:
        compiled = pattern_of(pattern)
        chosen = [topic for topic in known if compiled.fullmatch(topic)]
        if not chosen and not missing_is_fine:
            raise NoSuchTopic(f"no topic matches {pattern!r}: `ottla topics list` shows all topics")
        return chosen
    missing = [name for name in names if name not in known]
    if missing and not missing_is_fine:
        plural = "s" if len(missing) > 1 else ""
        pattern_like = next((name for name in missing if not _IS_NAME.fullmatch(name)), None)
        advice = "" if pattern_like is None else f"; for a regular expression write --topic '{pattern_like}'"
        raise NoSuchTopic(
            f"topic{plural} {', '.join(missing)} {'do' if plural else 'does'} not exist: `ottla topics list` shows the topics "
            f"that you may see{advice}"
        )
    return [name for name in known if name in names] if names else known


def match(topics: Iterable[str], word: str) -> list[str]:
    """The topic with the name `word`; if there is none, the topics that match it as a regular expression or as a glob.

    Only for read-only actions: as a regular expression `orders.eu` also matches `orders-eu`.
    """
    known = sorted(topics)
    if word in known:
        return [word]
    try:
        matched = [topic for topic in known if re.fullmatch(word, topic)]
    except re.error:
        matched = []
    return matched or fnmatch.filter(known, word)


def parse_assignment(text: str) -> list[list[int]]:
    """Parse Kafka's `1:2,2:3`: replicas of partition 0, then of partition 1, …"""
    assignment: list[list[int]] = []
    for partition, part in enumerate(text.split(",")):
        try:
            replicas = [int(broker) for broker in part.split(":")]
        except ValueError:
            raise click.UsageError(
                f"--replica-assignment takes broker ids, replicas with : and partitions with , between them, such as "
                f"1:2,2:3; {part!r} is none"
            ) from None
        if len(set(replicas)) < len(replicas):
            raise click.UsageError(f"--replica-assignment names a broker twice for partition {partition}: {part}")
        if assignment and len(assignment[0]) != len(replicas):
            raise click.UsageError(
                f"--replica-assignment gives partition {partition} {len(replicas)} replicas and partition 0 "
                f"{len(assignment[0])}: all must have as many"
            )
        assignment.append(replicas)
    return assignment
