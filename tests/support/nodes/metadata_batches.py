"""Batches of the metadata log, as the checkers of a simulated cluster get them."""

from ottla.metadata.features import METADATA_VERSION_MAX, record_version
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.kernels import Record
from ottla.sim.cluster.checkers.checker import Logged
from ottla.wire.base import Message
from ottla.wire.log_records import encode_metadata_record
from ottla.wire.messages.metadata_records import NoOpRecord

NOW_MS = 1_700_000_000_000


def logged(base_offset: int, epoch: int, *records: Message, timestamp_ms: int = NOW_MS) -> Logged:
    """A batch with these records; one that says nothing if none are given."""
    values = [encode_metadata_record(each, record_version(each, METADATA_VERSION_MAX)) for each in records or (NoOpRecord(),)]
    rows = [Record(base_offset + index, timestamp_ms, None, value) for index, value in enumerate(values)]
    return Logged.of(BatchView(build_batch(rows, leader_epoch=epoch)))
