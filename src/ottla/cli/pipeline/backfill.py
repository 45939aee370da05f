"""`ottla pipeline backfill`."""

from __future__ import annotations

from dataclasses import replace

import click

from ottla.cli.common.options import json_option
from ottla.cli.common.output import say, warn
from ottla.cli.common.times import TIME_HELP, parse_time_ms
from ottla.cli.common.waiting import wait_option
from ottla.cli.pipeline.options import Clients, cluster_option, environment_options, session_for, session_options
from ottla.cli.pipeline.run import Outages, check_before_spark, print_summary, run_pipeline, topics_within
from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.environments import Environment
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.hooks import told_on_failure
from ottla.spark.pipelines.spec import Schedule, read_spec
from ottla.spark.source.offsets import EARLIEST, LATEST, Where, parse_numbers

EXAMPLES = """\b
Examples:
  ottla pipeline backfill orders --from 2026-01-31T12:00 --to 2026-01-31T14:00
  ottla pipeline backfill orders keep_large_orders --from earliest --to 2h
  ottla pipeline backfill orders --from '{"orders": {"0": 100}}' --to '{"orders": {"0": 250}}'
"""


@click.command("backfill", epilog=EXAMPLES)
@click.argument("place", metavar="FOLDER")
@click.argument("flows", nargs=-1, metavar="[FLOW]...")
@click.option("--from", "begin", required=True, metavar="WHERE", help=f"The first record: earliest, {TIME_HELP}, or JSON.")
@click.option("--to", "end", required=True, metavar="WHERE", help="The end, before this: latest, a time, or JSON.")
@click.option("--id", "name", metavar="NAME", help="Another name: a range that was filled already is filled again.")
@wait_option("5m")
@environment_options
@session_options
@cluster_option
@json_option
def backfill(
    place: str,
    flows: tuple[str, ...],
    begin: str,
    end: str,
    name: str | None,
    wait_s: float,
    environment: Environment,
    master: str | None,
    remote: str | None,
    clients: Clients,
    as_json: bool,
) -> None:
    """Read a range of the topics of the pipeline in FOLDER again, and write the results to the same sinks.

    The pipeline's own offsets stay as they are, and it may run meanwhile. The same command again continues what was cut off,
    and writes nothing if it was complete. Flows into sinks are filled, all or those that are named; tables of files are not.
    """
    starts, stops = _where(begin, "--from", EARLIEST), _where(end, "--to", LATEST)
    spec = clients.of(read_spec(place, environment))
    with told_on_failure(spec, warn):
        check_before_spark(spec, topics_within(wait_s))
        from ottla.spark.pipelines import backfill as backfills

        own = replace(spec, backfill=name or backfills.backfill_id(starts, stops, flows))

        def found() -> dict[str, backfills.Range]:
            try:
                ranges = backfills.ranges_of(own, starts, stops)
            except (SourceError, SparkOptionError) as error:
                raise PipelineError(spec.masked(str(error))) from None
            if not as_json:
                counted = ", ".join(f"{source}: {each.records} records" for source, each in ranges.items())
                say(f"Backfill {own.backfill}: {counted}", err=True)
            return ranges

        with storage.locked(own):
            # A storage that is elsewhere is read with Spark.
            ranges = found() if storage.files_of(own) is not None else None
            with session_for(own, master, remote, quiet=as_json) as spark:
                bounded = backfills.with_ranges(own, found() if ranges is None else ranges)
                totals = run_pipeline(bounded, spark, Schedule(), as_json, Outages(bounded, wait_s), flows)
    print_summary(totals, as_json)


def _where(text: str, flag: str, default: int) -> Where:
    """What --from or --to means."""
    if text.lower() in ("earliest", "latest"):
        place = EARLIEST if text.lower() == "earliest" else LATEST
        if place != default:
            raise click.UsageError(f"{flag} {text} leaves nothing to read")
        return Where(place, option=flag)
    if text.lstrip().startswith("{"):
        try:
            return Where(default, offsets=parse_numbers(flag, text, "an offset"), option=flag)
        except SparkOptionError as error:
            raise click.UsageError(str(error)) from None
    return Where(default, time_ms=parse_time_ms(text, flag), is_latest_without_match=True, option=flag)
