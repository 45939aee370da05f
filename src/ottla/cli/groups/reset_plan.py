"""Plans of resets as Kafka's CSV: `topic,partition,offset` for one group, `group,topic,partition,offset` for several."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence

import click

from ottla.ids import TopicPartition

Plan = dict[str, dict[TopicPartition, int]]
"""New offsets by group."""

_QUOTED_BELOW = "-"
"""Kafka quotes a text that contains a character below this one …"""
_UNQUOTED_LENGTH_MAX = 24
"""… and a text that is longer than this."""


def to_csv(plan: Mapping[str, Mapping[TopicPartition, int]], with_group: bool) -> list[str]:
    """The lines of a plan, without line ends."""
    lines: list[str] = []
    for group_id, offsets in plan.items():
        group = f"{_text(group_id)}," if with_group else ""
        lines += [f"{group}{_text(each.topic)},{each.partition},{offset}" for each, offset in offsets.items()]
    return lines


def _text(value: str) -> str:
    if len(value) <= _UNQUOTED_LENGTH_MAX and all(character >= _QUOTED_BELOW for character in value):
        return value
    return '"' + value.replace('"', '""') + '"'


def read_plan(path: str, ids: Sequence[str] | None) -> Plan:
    """Read a plan from a file. Lines without a group are for the one group in `ids`."""
    try:
        with click.open_file(path, encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        raise click.UsageError(f"{path} is not CSV: {error}") from None
    plan: Plan = {}
    for number, row in enumerate(rows, 1):
        *group, topic, partition, offset = [cell.strip() for cell in row] if len(row) in (3, 4) else ["", "", ""]
        if not topic or not partition.isdigit() or not offset.isdigit():
            raise click.UsageError(
                f"line {number} of {path} is neither topic,partition,offset nor group,topic,partition,offset: {','.join(row)}"
            )
        if not group and (ids is None or len(ids) != 1):
            raise click.UsageError(f"line {number} of {path} does not name a group: write group,topic,partition,offset")
        group_id = group[0] if group else (ids or [""])[0]
        plan.setdefault(group_id, {})[TopicPartition(topic, int(partition))] = int(offset)
    return plan
