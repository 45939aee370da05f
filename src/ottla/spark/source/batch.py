"""`BatchReader`: reads topics once, between two sets of offsets that the driver fixes before the first task starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.spark.errors import SourceError, plain_errors
from ottla.spark.source import lookup
from ottla.spark.source.columns import checked_names
from ottla.spark.source.loss import DataLoss
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.plan import OffsetRange, split_ranges
from ottla.spark.source.reading import read_range
from ottla.spark.source.topics import find_partitions


class BatchReader(DataSourceReader):
    """Reads a batch."""

    def __init__(self, options: SourceOptions, schema: Any) -> None:
        self._options = options
        self._names = checked_names(schema)

    def partitions(self) -> Sequence[OffsetRange]:
        """The ranges to read, one for each task."""
        with plain_errors():
            return self._plan()

    def _plan(self) -> Sequence[OffsetRange]:
        options, loss = self._options, DataLoss(self._options.fail_on_data_loss)
        there = find_partitions(options)
        found = there.partitions
        if not found:
            raise SourceError(f"no topic at {options.bootstrap_servers} matches subscribePattern {options.pattern!r}")
        starts = lookup.find_offsets(options, options.starting, found)
        ends = lookup.find_offsets(options, options.ending, found)
        for each in found:
            if options.starting.offsets is not None and options.ending.offsets is not None and starts[each] > ends[each]:
                raise SourceError(
                    f"{each} would be read from offset {starts[each]} to {ends[each]}: the end is before the start"
                )
        for each, end in lookup.end_offsets(options, found).items():
            for option, offset in ((options.starting.option, starts[each]), (options.ending.option, ends[each])):
                if offset > end:
                    loss.tell(f"{option} is {offset} for {each}, which ends at offset {end}")
            ends[each] = min(ends[each], end)
            starts[each] = min(starts[each], ends[each])
        # A range without records has none to lose.
        whole = [each for each in found if starts[each] < ends[each]]
        begins = loss.starts({each: starts[each] for each in whole}, lookup.first_offsets(options, whole))
        bounds = {each: ends[each] for each in whole}
        return split_ranges(begins, bounds, options.partitions_min, options.records_per_task_max, there.topic_ids)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one range."""
        return read_range(self._options, partition, self._names)
