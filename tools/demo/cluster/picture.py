"""The picture of who leads what: a line for each node, a column for each partition. Pure, except for colours of click."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import click

from ottla.client.admin.topic_descriptions import PartitionDescription

LEADS, FOLLOWS, OUT = "★ leads", "· in sync", "✗ out"
CELL = 12


def draw(topic: str, partitions: Sequence[PartitionDescription], nodes: Sequence[int], up: Collection[int]) -> list[str]:
    """Lines with colours; `click.echo` leaves the colours out where the output is not a terminal."""
    heading = "".join(f"{topic}-{each.partition}".ljust(CELL) for each in partitions)
    lines = [click.style(f"{'':10}{heading}".rstrip(), bold=True)]
    for node in nodes:
        cells = "".join(_cell(node, each) for each in partitions)
        state = click.style("up", fg="green") if node in up else click.style("down", fg="red", bold=True)
        lines.append(f"{f'node {node}':10}{cells}{state}")
    in_sync = ", ".join(f"{topic}-{each.partition}: {len(each.isr)} of {len(each.replicas)}" for each in partitions)
    return [*lines, click.style(f"{'':10}in sync: {in_sync}", dim=True)]


def _cell(node: int, partition: PartitionDescription) -> str:
    if node not in partition.replicas:
        return " " * CELL
    if node not in partition.isr:
        return click.style(OUT.ljust(CELL), fg="red")
    if node == partition.leader:
        return click.style(LEADS.ljust(CELL), fg="green", bold=True)
    return FOLLOWS.ljust(CELL)
