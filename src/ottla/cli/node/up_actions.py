"""`ottla up status`, `stop`, `start`, `restart` and `add`: act on the nodes of an `ottla up` that runs in another terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.cli.common.options import json_option
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.node.control import Line, ask

F = TypeVar("F", bound=Callable[..., Any])
HEADINGS = ("#Node", "State", "Address", "Roles", "#Pid")


def _data_option(command: F) -> F:
    """The folder of the `ottla up`: of the action, else of `ottla up` itself (`ottla up --data X status`)."""
    option = click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        callback=lambda ctx, param, value: (value or ctx.parent.params["data"]).resolve(),
        help="The folder that `ottla up` was started with.  [default: ottla-data]",
    )
    decorated: F = option(command)
    return decorated


def _node_argument(command: F) -> F:
    decorated: F = click.argument("node", type=click.IntRange(1))(command)
    return decorated


@click.command()
@json_option
@_data_option
def status(data: Path, as_json: bool) -> int:
    """Show the nodes of `ottla up`: state, address, roles and process. Exit code 1 if one is not up."""
    (line,) = ask(data, {"do": "status"})
    nodes: list[Line] = line["done"]
    if as_json:
        print_json(nodes)
    else:
        rows = [
            (each["node_id"], each["state"], each["bootstrap_servers"] or "-", each["roles"], each["pid"]) for each in nodes
        ]
        if is_for_people():
            print_table(None, HEADINGS, rows)
        else:
            for row in rows:
                say(*("-" if cell is None else str(cell) for cell in row))
    return 0 if all(each["state"] == "up" for each in nodes) else 1


@click.command()
@click.argument("node", required=False, type=click.IntRange(1))
@_data_option
def stop(data: Path, node: int | None) -> None:
    """Stop NODE cleanly; its partitions get other leaders first. Without NODE, stop all of `ottla up`, as Ctrl-C does."""
    _follow(data, {"do": "stop", "node": node})


@click.command()
@_node_argument
@_data_option
def start(data: Path, node: int) -> None:
    """Start NODE again, and wait until it answers."""
    _follow(data, {"do": "start", "node": node})


@click.command()
@_node_argument
@_data_option
def restart(data: Path, node: int) -> None:
    """Stop NODE cleanly, start it again, and wait until it answers."""
    _follow(data, {"do": "restart", "node": node})


@click.command()
@_data_option
def add(data: Path) -> None:
    """Add a node: a broker without a vote, with the next id and port. Later runs of `ottla up --nodes` start it, too."""
    _follow(data, {"do": "add"})


def _follow(data: Path, request: Line) -> None:
    for line in ask(data, request):
        if "say" in line:
            say(line["say"])
