"""Flags that the actions of `reassign` share: the file with the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def plan_argument(function: F) -> F:
    """Adds the argument FILE, and Kafka's --reassignment-json-file; the function gets both."""
    function = click.option(
        "--reassignment-json-file", "kafkas_file", metavar="FILE", help="Kafka's spelling of FILE.", type=click.Path()
    )(function)
    return click.argument("file", required=False, type=click.Path(allow_dash=True))(function)


def plan_path(file: str | None, kafkas_file: str | None, action: str) -> str:
    """The file with the plan, given one way or the other."""
    if (file is None) == (kafkas_file is None):
        raise click.UsageError(f"name the file with the plan: ottla reassign {action} plan.json (- reads standard input)")
    return file or kafkas_file or ""


preserve_option = click.option("--preserve-throttles", is_flag=True, help="Do not remove the throttles of brokers and topics.")
timeout_option = click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    help="How many milliseconds to wait until moves between log directories have begun.",
)
