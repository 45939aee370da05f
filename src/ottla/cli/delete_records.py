"""The `delete-records` verb: deletes the records of partitions below an offset. Flags and output are kafka-delete-records'."""

from __future__ import annotations

from typing import Any

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.explanations import explain
from ottla.cli.common.json_files import read_json, typed
from ottla.cli.common.options import cluster_options, json_option, yes_option
from ottla.cli.common.output import confirm, print_json, say
from ottla.cli.common.settings import ClientSettings
from ottla.client.admin import offsets as admin
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

EXAMPLES = """\b
Examples:
  ottla delete-records orders:0:1000              records of partition 0 below offset 1000
  ottla delete-records orders:0:end orders:1:end  all current records
  ottla delete-records --offset-json-file offsets.json
\b
The file has Kafka's form:
  {"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}
"""

END = -1
"""The protocol's number for the high watermark: deletes every committed record."""

FORM = '{"partitions": [{"topic": "orders", "partition": 0, "offset": 1000}], "version": 1}'


@click.command("delete-records", epilog=EXAMPLES)
@click.argument("places", nargs=-1, metavar="[TOPIC:PARTITION:OFFSET]...")
@click.option("--offset-json-file", metavar="FILE", help="Offsets by partition, in Kafka's form; - reads standard input.")
@yes_option
@json_option
@cluster_options()
def delete_records(
    settings: ClientSettings, places: tuple[str, ...], offset_json_file: str | None, yes: bool, as_json: bool
) -> int:
    """Delete the records of partitions below an offset, permanently. Asks for confirmation on a terminal."""
    if bool(places) == (offset_json_file is not None):
        raise click.UsageError(
            "say which records, for example: ottla delete-records orders:0:1000 (or --offset-json-file FILE)"
        )
    offsets = _unique([_parse_place(place) for place in places] if places else _read_file(offset_json_file or ""))
    what = ", ".join(f"{each} below {'its end' if offset == END else offset}" for each, offset in offsets.items())
    confirm(f"Delete the records of {what}?", yes)
    wanted: dict[TopicPartition | tuple[str, int], int] = dict(sorted(offsets.items()))
    results = with_cluster(settings, lambda cluster: admin.delete_records(cluster, wanted))
    outcomes = [(each, results.errors.get(each) or results[each]) for each in results]
    if as_json:
        print_json([_as_json(each, outcome) for each, outcome in outcomes])
    else:
        say("Executing records delete operation")
        say("Records delete operation completed:")
        for each, outcome in outcomes:
            said = f"error: {explain(outcome)}" if isinstance(outcome, KafkaError) else f"low_watermark: {outcome}"
            say(f"partition: {each}", said)
    return 1 if results.errors else 0


def _parse_place(text: str) -> tuple[TopicPartition, int]:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not topic or not partition.isdigit() or not (offset.isdigit() or offset in ("end", "-1")):
        raise click.UsageError(f"{text!r} is not TOPIC:PARTITION:OFFSET: write for example orders:0:1000, or orders:0:end")
    return TopicPartition(topic, int(partition)), int(offset) if offset.isdigit() else END


def _read_file(path: str) -> list[tuple[TopicPartition, int]]:
    def parse(content: Any) -> list[tuple[TopicPartition, int]]:
        return [
            (TopicPartition(typed(each["topic"], str), typed(each["partition"], int)), typed(each["offset"], int))
            for each in content["partitions"]
        ]

    return read_json(path, FORM, parse)


def _unique(places: list[tuple[TopicPartition, int]]) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for each, offset in places:
        if each in offsets:
            raise click.UsageError(f"partition {each} is named twice")
        offsets[each] = offset
    if not offsets:
        raise click.UsageError("no partition is named: there is nothing to delete")
    return offsets


def _as_json(each: TopicPartition, result: int | KafkaError) -> dict[str, object]:
    place: dict[str, object] = {"topic": each.topic, "partition": each.partition}
    return place | ({"error": explain(result)} if isinstance(result, KafkaError) else {"lowWatermark": result})
