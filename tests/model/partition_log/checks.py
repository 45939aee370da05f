"""Compares a partition log with its model. Every difference is an `AssertionError` that says what differs."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from tests.model.partition_log.model import Batch, LogModel, Producer, Producers, Sent, Transaction, parse_batch
from tests.support.logs.log_reading import consume, whole_batches

from ottla.log.names import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from ottla.log.partition_log import PartitionLog
from ottla.log.producers.producer_entry import ProducerEntry
from ottla.log.read import Isolation
from ottla.log.segments.scan import checked_batches, headers
from ottla.log.segments.segment import Segment
from ottla.records.record import Record
from ottla.sim.disk import MemoryDisk, copy_tree

parse_cached = lru_cache(maxsize=4096)(parse_batch)


def same(what: str, actual: object, expected: object) -> None:
    assert actual == expected, f"{what}: the log has {actual!r}, the model {expected!r}"


# -- the log's numbers


def check_offsets(log: PartitionLog, model: LogModel, exact_lso: bool) -> None:
    same("log start", log.log_start_offset, model.log_start)
    same("log end", log.log_end_offset, model.log_end)
    same("high watermark", log.high_watermark, model.high_watermark)
    low, high = model.last_stable_bounds()
    stable = log.last_stable_offset
    if exact_lso:
        same("last stable offset", stable, low)
    assert low <= stable <= high, f"last stable offset {stable}, the model has {low} to {high}"
    assert log.log_start_offset <= stable <= log.high_watermark <= log.log_end_offset
    assert log.recovery_point <= log.log_end_offset


def check_epochs(log: PartitionLog, model: LogModel) -> None:
    same("leader epochs", log.epochs.entries, model.epochs)


# -- records


def read_back(log: PartitionLog, max_bytes: int = 3000) -> list[Batch]:
    """Every batch from the log start offset on, fetched as a replica would."""
    offset = log.log_start_offset
    found: list[Batch] = []
    while True:
        info = log.read(offset, max_bytes)
        if info.records is None:
            return found
        batches = [parse_cached(bytes(view.data)) for view in whole_batches(info.records.read())]
        assert batches, f"a read at {offset} gave no whole batch"
        assert batches[0].last_offset >= offset, f"a read at {offset} begins with a batch that ends at {batches[0].last_offset}"
        found += batches
        offset = batches[-1].next_offset


def read_files(log: PartitionLog) -> list[Batch]:
    """Every batch in the log's files, also those before its start."""
    return [
        parse_cached(bytes(view.data)) for segment in log.segments for _, view in checked_batches(segment.file, 0, segment.size)
    ]


def check_batches(actual: list[Batch], expected: list[Batch]) -> None:
    for have, want in zip(actual, expected, strict=False):
        assert have == want, f"a batch differs:\n  the log has {have}\n  the model   {want}"
    extra, missing = actual[len(expected) :], expected[len(actual) :]
    assert not extra, f"the log has {len(extra)} batches too many, from {extra[0]}"
    assert not missing, f"the log lacks {len(missing)} batches, from {missing[0]}"


def check_some(actual: list[Batch], expected: list[Batch]) -> None:
    """During compaction: every batch read is an expected one, perhaps without some of its records."""
    known = {batch.base_offset: set(batch.records) for batch in expected}
    for batch in actual:
        assert known.get(batch.base_offset, set()) >= set(batch.records), f"{batch} was read, which is not in the log"


def check_committed(log: PartitionLog, model: LogModel) -> None:
    """Check what a consumer of committed records gets."""
    actual = [record for _, record in consume(log, Isolation.COMMITTED)]
    check_records(actual, model.committed(log.last_stable_offset))


def check_records(actual: list[Record], expected: list[Record]) -> None:
    for have, want in zip(actual, expected, strict=False):
        assert have == want, f"a record differs:\n  the log gives {have}\n  the model     {want}"
    same("offsets of committed records", [r.offset for r in actual], [r.offset for r in expected])


def check_aborted(log: PartitionLog, model: LogModel, start: int, end: int) -> None:
    """Check the aborted transactions in a range: all of them, or those with records left after compaction or deletion."""
    actual = {(txn.producer_id, txn.last_offset): txn for txn in log.aborted_transactions(start, end)}
    expected = [txn for txn in model.transactions if txn.aborted and txn.last_offset >= start and txn.first_offset < end]
    present = {batch.base_offset for batch in model.visible()}
    for txn in expected:
        if any(_is_data_of(txn, batch) and start <= batch.last_offset and batch.base_offset < end for batch in model.visible()):
            found = actual.get((txn.producer_id, txn.last_offset))
            assert found is not None, f"the aborted transaction {txn} is not found in [{start}, {end})"
            if txn.first_offset in present:
                same("an aborted transaction's start", found.first_offset, txn.first_offset)
    known = {(txn.producer_id, txn.last_offset): txn for txn in model.transactions if txn.aborted}
    aborts = {(batch.producer_id, batch.base_offset) for batch in model.history if batch.commits is False}
    for key, found in actual.items():
        if key not in known:  # a start may remember a transaction from before the log start offset that the model has forgotten
            assert key in aborts, f"{found} was never aborted"
            continue
        first, stable = known[key].first_offset, known[key].stable_offset
        if min(first, stable) >= max(model.log_start, model.cleaned_up_to):
            # A lower last stable offset is correct: lookups only take longer. A start may remember a transaction from before
            # the log start offset, or one may have begun later in the same append.
            same("the start of an aborted transaction", found.first_offset, first)
            assert min(found.last_stable_offset, key[1] + 1) <= stable, f"{found} says that more was stable than {stable}"


def _is_data_of(txn: Transaction, batch: Batch) -> bool:
    return (
        batch.transactional
        and not batch.is_control
        and bool(batch.records)
        and batch.producer_id == txn.producer_id
        and txn.first_offset <= batch.base_offset < txn.last_offset
    )


# -- producers


def producer_of(entry: ProducerEntry) -> Producer:
    sent = [Sent(batch.first_sequence, batch.last_sequence, batch.first_offset, batch.last_offset) for batch in entry.batches]
    return Producer(entry.epoch, entry.coordinator_epoch, entry.last_timestamp_ms, entry.transaction_first_offset, sent)


def producers_of(entries: Iterable[ProducerEntry]) -> Producers:
    return {entry.producer_id: producer_of(entry) for entry in entries}


def check_producers(log: PartitionLog, model: LogModel) -> None:
    actual = producers_of(log.producers.producers.values())
    for producer_id in sorted(actual.keys() | model.producers.keys()):
        same(f"producer {producer_id}", actual.get(producer_id), model.producers.get(producer_id))
    same("the producers' offset", log.producers.map_end_offset, max(log.log_end_offset, log.log_start_offset))


def reload_difference(actual: Producers, wanted: Producers, model: LogModel) -> str:
    """How `actual`, which a start has loaded, differs from `wanted`. The last batch of each producer must be known, and those
    before it that are still in the log; no other batch may be."""
    differences = []
    present = {batch.base_offset for batch in model.visible()}
    for producer_id in sorted(actual.keys() | wanted.keys()):
        have, want = actual.get(producer_id), wanted.get(producer_id)
        if have is None or want is None or replace(have, sent=[]) != replace(want, sent=[]):
            differences.append(f"producer {producer_id} is {have}, should be {want}")
            continue
        sent, last = have.sent, want.sent[-1:]
        least = [each for each in since_zero(want.sent) if each in last or each.first_offset in present]
        if [each for each in sent if each in least] != least or sent[-1:] != last:
            differences.append(f"producer {producer_id} has sent {sent}, should at least have {least}")
        ever = model.sent_by(producer_id, have.epoch)
        if [each for each in ever if each in sent] != sent:
            differences.append(f"producer {producer_id} has sent {sent}, which it never did")
    return "; ".join(differences)


def since_zero(sent: list[Sent]) -> list[Sent]:
    """Without batches before sequence 0: a start does not look further back, though sequences may have wrapped."""
    zeros = [index for index, each in enumerate(sent) if each.first_sequence == 0]
    return sent[zeros[-1] :] if zeros else sent


def is_snapshot_of(found: Mapping[int, Producer | None], known: Mapping[int, Producer | None]) -> bool:
    """Whether a snapshot matches `known`. It stores only the last batch of each producer."""
    return found == {key: producer and replace(producer, sent=producer.sent[-1:]) for key, producer in known.items()}


# -- compaction


def check_compacted(before: list[Batch], after: list[Batch], model: LogModel) -> None:
    """`after` may lack records of `before` that compaction may drop, and no others."""
    old = {batch.base_offset: batch for batch in before}
    for batch in after:
        was = old.get(batch.base_offset)
        assert was is not None, f"compaction made a batch that was not there: {batch}"
        kept = set(batch.records)
        assert [r for r in was.records if r in kept] == list(batch.records), f"compaction changed\n  {was} into\n  {batch}"
        same_fields = replace(
            batch, records=was.records, max_timestamp=was.max_timestamp, delete_horizon_ms=was.delete_horizon_ms,
            commits=was.commits, coordinator_epoch=was.coordinator_epoch,
        )  # fmt: skip
        same("a compacted batch", same_fields, was)
        if was.delete_horizon_ms is not None and batch.records:
            same("a delete horizon", batch.delete_horizon_ms, was.delete_horizon_ms)
    same("the last value of every key", last_values(after, model), last_values(before, model))
    now = {batch.base_offset: batch for batch in after}
    for batch in before:
        if batch.is_control and batch.records and not (batch.base_offset in now and now[batch.base_offset].records):
            assert batch.delete_horizon_ms is not None, (
                f"a marker was removed without ever having had a delete horizon: {batch}"
            )


def last_values(batches: list[Batch], model: LogModel) -> dict[bytes, tuple[int, bytes]]:
    """Key → (offset, value) of its last record that is not aborted: the table a consumer would build."""
    table: dict[bytes, tuple[int, bytes]] = {}
    for batch in batches:
        if batch.is_control or model.is_aborted(batch):
            continue
        for record in batch.records:
            if record.key is None or record.offset < max(model.log_start, model.cleaned_from):
                continue
            if record.value is None:
                table.pop(record.key, None)
            else:
                table[record.key] = (record.offset, record.value)
    return table


# -- indexes


def check_indexes(log: PartitionLog) -> None:
    """Every entry of every index matches the log file."""
    for segment in log.segments:
        check_segment_indexes(segment)


def check_segment_indexes(segment: Segment) -> None:
    places = dict(headers(segment.file, 0, segment.size))
    _ = segment.max_timestamp, segment.find(segment.base_offset)  # an index that a power loss has torn is rebuilt first
    last_offsets = {view.last_offset: position for position, view in places.items()}
    index = segment.offset_index
    index.open()
    before = (-1, -1)
    for number in range(index.count):
        relative, position = index.entry(number)
        view = places.get(position)
        assert view is not None, f"{index.path}: entry {number} points to {position}, where no batch begins"
        assert view.last_offset == segment.base_offset + relative, f"{index.path}: entry {number} has the wrong offset"
        assert before < (relative, position), f"{index.path}: entry {number} does not rise"
        before = (relative, position)
    times = segment.time_index
    times.open()
    before = (-1, -1)
    for number in range(times.count):
        timestamp, relative = times.entry(number)
        position_of_entry = last_offsets.get(segment.base_offset + relative)
        assert position_of_entry is not None, f"{times.path}: entry {number} names an offset at which no batch ends"
        largest = max(view.max_timestamp for position, view in places.items() if position <= position_of_entry)
        same(f"{times.path}: the timestamp of entry {number}", timestamp, largest)
        rises = before[0] < timestamp and before[1] < relative
        assert rises, f"{times.path}: entry {number} does not rise"
        before = (timestamp, relative)
    same(f"{segment}: largest timestamp", segment.max_timestamp, max((v.max_timestamp for v in places.values()), default=-1))


def check_rebuilt(disk: MemoryDisk, folder: str, log: PartitionLog, sure_from: int) -> None:
    """After a clean shutdown, indexes rebuilt from the records have the same bytes as those that were written."""
    copy = MemoryDisk()
    faults, disk.faults = disk.faults, []  # they are for the log, not for us
    copy_tree(disk, folder, copy, folder)
    disk.faults = faults
    for base_offset in log.segments.base_offsets:
        if base_offset < sure_from:
            continue
        segment = Segment(copy, folder, base_offset, log.config, now_ms=0)
        written = [copy.read_file(segment.path(suffix)) for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)]
        segment.rebuild_indexes()
        segment.close()
        rebuilt = [copy.read_file(segment.path(suffix)) for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)]
        same(f"the indexes of segment {base_offset}", written, rebuilt)
