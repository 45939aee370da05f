"""Reading one range, in a Python worker of an executor.

The consumer fetches the next answer while Spark takes the last one, and nothing beyond the end of the range. A task that is
cancelled or fails closes its consumer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import InputPartition

from ottla.errors import OffsetOutOfRangeError, TimeoutError, UnknownTopicIdError, UnknownTopicOrPartitionError
from ottla.spark import clients
from ottla.spark.errors import SourceError, plain_errors
from ottla.spark.source import lookup
from ottla.spark.source.columns import record_batches
from ottla.spark.source.loss import DataLoss, aged_out, cut_short, made_again
from ottla.spark.source.offsets import is_replaced
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.plan import OffsetRange
from ottla.spark.source.topics import settled_partitions

logger = logging.getLogger("ottla.spark")

LOOK_AROUND_S = 10.0
"""When nothing came for this long, look whether the topic and its records are still there."""
LOST = (OffsetOutOfRangeError, UnknownTopicIdError, UnknownTopicOrPartitionError)


def read_range(options: SourceOptions, wanted: InputPartition, names: Sequence[str]) -> Iterator[Any]:
    """The records of a range as Arrow record batches."""
    if not isinstance(wanted, OffsetRange):
        return  # Spark makes an empty partition of its own for a plan without any
    each, begin, end = wanted.partition, wanted.first, wanted.end
    came_s = time.monotonic()
    with plain_errors():
        while begin < end:
            try:
                with clients.consumer(options.client) as consumer:
                    limit_s = min(LOOK_AROUND_S, options.poll_timeout_ms / 1000)
                    for _, views in consumer.read_ranges({each: (begin, end)}, form="views", timeout=limit_s):
                        yield from record_batches(each, views, end, names)
                        begin = max(begin, views.batches[-1].next_offset)
                        came_s = time.monotonic()
                return
            except (*LOST, TimeoutError) as error:
                begin, end = _what_is_left(options, replace(wanted, first=begin, end=end), error, time.monotonic() - came_s)


def _what_is_left(options: SourceOptions, wanted: OffsetRange, error: Exception, waited_s: float) -> tuple[int, int]:
    """The part of a range that can still be read, after `error`; raises if failOnDataLoss says so."""
    loss, each = DataLoss(options.fail_on_data_loss), wanted.partition
    ids = {} if wanted.topic_id is None else {each.topic: wanted.topic_id}
    found = settled_partitions(options, [each], ids)
    if each not in found.partitions:
        loss.gone_partitions([each])
        return wanted.end, wanted.end
    first = lookup.first_offsets(options, [each])[each]
    last = lookup.settled_ends(options, [each], {each: wanted.end})[each]
    if is_replaced(each.topic, ids, found.topic_ids):
        loss.tell(made_again(each, wanted.first, last))
        return wanted.end, wanted.end  # the new topic is read from its start, in a later batch
    if wanted.first < first:
        loss.tell(aged_out(each, wanted.first, min(first, wanted.end)))
        return min(first, wanted.end), min(last, wanted.end)
    if last < wanted.end or (isinstance(error, UnknownTopicIdError) and not ids):
        loss.tell((cut_short if ids else made_again)(each, wanted.first, last))
        return min(wanted.first, last), min(last, wanted.end)
    if not isinstance(error, (TimeoutError, UnknownTopicIdError)):
        raise SourceError(f"{each} cannot be read from offset {wanted.first} on: {error}") from None
    if waited_s * 1000 >= options.poll_timeout_ms:
        raise SourceError(
            f"offsets {wanted.first} to {wanted.end - 1} of {each} did not come from {options.bootstrap_servers} within "
            f"{options.poll_timeout_ms / 1000:g} s; raise kafkaConsumer.pollTimeoutMs if its brokers are only slow"
        ) from None
    logger.warning("waiting for %s from offset %d on, for %.0f s already: %s", each, wanted.first, waited_s, error)
    if isinstance(error, UnknownTopicIdError):
        time.sleep(options.lookup_interval_ms / 1000)  # a broker that lags: it is not asked again at once
    return wanted.first, wanted.end
