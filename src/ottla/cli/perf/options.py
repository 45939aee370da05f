"""Flags that the perf actions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.options import json_option, wide_option

F = TypeVar("F", bound=Callable[..., Any])

INTERRUPTED = 130


def topic_options(function: F) -> F:
    """Add the argument TOPIC, and Kafka's `--topic`."""
    function = click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="Kafka's spelling of TOPIC.")(
        function
    )
    return click.argument("name", required=False, metavar="[TOPIC]", shell_complete=complete_topics)(function)


def chosen_topic(name: str | None, topic: str | None, example: str) -> str:
    """The topic, which must be named exactly once."""
    if name is None and topic is None:
        raise click.UsageError(f"name the topic, for example: {example}")
    if name is not None and topic is not None:
        raise click.UsageError(f"the topic is named twice, {name} and {topic}: leave one of them out")
    return name or topic or ""


interval_option = click.option(
    "--reporting-interval",
    "interval_ms",
    type=click.IntRange(1),
    default=5000,
    show_default=True,
    metavar="MS",
    help="How often to print what was measured since the last line.",
)


def output_options(function: F) -> F:
    """Add the flags that say in which form results are shown."""
    plain_option = click.option("--plain", is_flag=True, help="The lines of Kafka's tool, also on a terminal.")
    return json_option(plain_option(wide_option(function)))


metrics_option = click.option("--print-metrics", is_flag=True, help="Print the client's metrics at the end.")
