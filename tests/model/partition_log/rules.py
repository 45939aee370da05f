"""The rules of the machine: each is a function that does one operation on a `LogWorld` and on its model.

All randomness comes from `world.random`, so the same rules serve a plain seeded run and Hypothesis, which shrinks. Rules that
make the log shorter are in `shortening.py`, those that cut an operation short in `faults.py`.

A rule announces what it is about to do (`world.intend`): if the world ends before it is done, it may or may not have happened.
"""

from tests.model.partition_log import checks
from tests.model.partition_log.batches import (
    as_appended,
    data_batch,
    follower_fetch,
    make_records,
    marker_batch,
    odd_timestamps,
)
from tests.model.partition_log.model import SEQUENCES, Batch, Sent
from tests.model.partition_log.world import EXPIRATION_MS, LogWorld
from tests.support.logs.log_reading import whole_batches

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.read import Isolation
from ottla.records.record import Record

# -- appending


def lead(world: LogWorld, data: bytearray, batch: Batch) -> None:
    """Append as leader, and compare the result with the model's verdict."""
    model, log = world.model, world.log
    verdict = model.verdict(batch)
    if verdict is None and len(data) > world.config.segment_bytes:
        verdict = ErrorCode.RECORD_LIST_TOO_LARGE
    expected = as_appended(world, batch)
    segments_before, size_before = len(log.segments), log.size_bytes
    world.intend(append=[] if verdict else [expected])
    try:
        info = log.append_as_leader(data, world.leader_epoch)
        world.done()
    except KafkaError as error:
        world.done()
        checks.same("the error of an append", error.code, verdict)
        checks.same("size after a refused append", log.size_bytes, size_before)
        world.counts[f"refused: {ErrorCode(error.code).name}"] += 1
        return
    if info.is_duplicate:
        assert isinstance(verdict, Sent), f"{batch} was taken for a duplicate of {info}, the model says {verdict!r}"
        checks.same("a duplicate's place", (info.first_offset, info.last_offset), (verdict.first_offset, verdict.last_offset))
        checks.same("size after a duplicate", log.size_bytes, size_before)
        world.counts["duplicates recognised"] += 1
        return
    assert verdict is None, f"{batch} was appended, the model says {verdict!r}"
    checks.same("the offsets of an append", (info.first_offset, info.last_offset), (expected.base_offset, expected.last_offset))
    model.append(expected)
    after_append(world, segments_before, info.flush_needed)


def after_append(world: LogWorld, segments_before: int, flush_needed: bool) -> None:
    world.counts["appends"] += 1
    if len(world.log.segments) > segments_before:
        world.counts["rolls"] += 1
        after_roll(world)
    if flush_needed and not world.is_nested:
        flush(world)


def after_roll(world: LogWorld) -> None:
    if world.flushes_rolls and world.log.flush_wanted_up_to is not None and not world.is_nested:
        flush_up_to(world, world.log.flush_wanted_up_to)


def append_plain(world: LogWorld) -> None:
    records = make_records(world, 0)
    if world.random.random() < 0.1:
        records = odd_timestamps(world, records)
    lead(world, *data_batch(world, records, -1))


def append_idempotent(world: LogWorld) -> None:
    """From a correct producer: the next sequence, in its epoch or a new one."""
    producer_id = world.random.randrange(4)
    lead(world, *data_batch(world, records := make_records(world, 0), -1, next_of(world, producer_id, len(records))))


def next_of(world: LogWorld, producer_id: int, _count: int) -> tuple[int, int, int]:
    known = world.model.producers.get(producer_id)
    random = world.random
    if known is None:
        return producer_id, random.choice((0, 0, 7)), random.choice((0, 0, 5, SEQUENCES - 3))
    if random.random() < 0.08:
        return producer_id, known.epoch + 1, 0
    last = known.sent[-1].last_sequence if known.sent else -1
    return producer_id, known.epoch, (last + 1) % SEQUENCES


def append_repeated(world: LogWorld) -> None:
    """A retry of one of the last batches, which may all be in flight."""
    candidates = [(key, sent) for key, known in world.model.producers.items() for sent in known.sent]
    if not candidates:
        return
    producer_id, sent = world.random.choice(candidates)
    known = world.model.producers[producer_id]
    records = [Record(i, world.clock.now_ms(), b"k", b"again") for i in range(sent.last_offset - sent.first_offset + 1)]
    transactional = known.transaction_first is not None
    producer = (producer_id, known.epoch, sent.first_sequence)
    lead(world, *data_batch(world, records, -1, producer, transactional))


def append_out_of_order(world: LogWorld) -> None:
    """A batch of a broken or fenced producer."""
    random = world.random
    producer_id = random.randrange(8)
    known = world.model.producers.get(producer_id)
    if known is None:
        return
    epoch = max(0, known.epoch + random.choice((-1, 0, 0, 1)))
    last = known.sent[-1].last_sequence if known.sent else -1
    sequence = max(0, last + random.choice((-30, -3, -1, 0, 2, 10))) % SEQUENCES
    lead(world, *data_batch(world, make_records(world, 0), -1, (producer_id, epoch, sequence), random.random() < 0.5))


def append_transactional(world: LogWorld) -> None:
    producer_id = 4 + world.random.randrange(4)
    records = make_records(world, 0)
    lead(world, *data_batch(world, records, -1, next_of(world, producer_id, len(records)), True))


def end_transaction(world: LogWorld) -> None:
    """A coordinator commits or aborts a transaction; sometimes a stale one, or a retry."""
    model, random = world.model, world.random
    open_ids = sorted(key for key, known in model.producers.items() if known.transaction_first is not None)
    producer_id = random.choice(open_ids) if open_ids and random.random() < 0.9 else 4 + random.randrange(4)
    known = model.producers.get(producer_id)
    version = random.choice((0, 1, 2))
    epoch = max(0, (0 if known is None else known.epoch) + random.choice((0, 0, 1, -1) if version < 2 else (1, 1, 0)))
    coordinator_epoch = max(0, (0 if known is None else known.coordinator_epoch) + random.choice((0, 0, 0, 1, -1)))
    append_marker(world, (producer_id, epoch), version, coordinator_epoch)


def settle(world: LogWorld) -> None:
    """End every transaction and let the replicas catch up, so that readers and compaction reach the log end offset."""
    for producer_id, known in sorted(world.model.producers.items()):
        if known.transaction_first is not None:
            append_marker(world, (producer_id, known.epoch), 0, max(0, known.coordinator_epoch))
    world.log.increment_high_watermark(world.model.log_end)
    world.model.high_watermark = world.model.log_end


def append_marker(world: LogWorld, producer: tuple[int, int], version: int, coordinator_epoch: int) -> None:
    """Append an end marker, and compare the result with the model's verdict."""
    model, log = world.model, world.log
    commits = world.random.random() < 0.5
    data, batch = marker_batch(world, 0, -1, producer, commits, coordinator_epoch)
    verdict, expected = model.marker_verdict(batch, version), as_appended(world, batch)
    segments_before = len(log.segments)
    world.intend(append=[] if verdict else [expected])
    try:
        info = log.append_as_leader(data, world.leader_epoch, AppendOrigin.COORDINATOR, transaction_version=version)
        world.done()
    except KafkaError as error:
        world.done()
        checks.same("the error of a marker", error.code, verdict)
        world.counts[f"refused: {ErrorCode(error.code).name}"] += 1
        return
    assert verdict is None, f"{batch} was appended, the model says {verdict!r}"
    model.append(expected)
    world.counts["commits" if commits else "aborts"] += 1
    after_append(world, segments_before, info.flush_needed)


def append_as_follower(world: LogWorld) -> None:
    """Some batches as another leader wrote them: with gaps, and sometimes with the last one cut."""
    data, batches = follower_fetch(world)
    segments_before = len(world.log.segments)
    tail = b""
    if world.random.random() < 0.2:
        torn, _ = data_batch(world, make_records(world, world.model.log_end + 1000), world.leader_epoch)
        tail = bytes(torn[: world.random.randrange(1, len(torn))])
    world.intend(append=batches)
    info = world.log.append_as_follower(data + tail, world.leader_epoch)
    world.done()
    for batch in batches:
        world.model.append(batch)
    checks.same(
        "a follower's offsets", (info.first_offset, info.last_offset), (batches[0].base_offset, batches[-1].last_offset)
    )
    world.counts["follower appends"] += 1
    after_append(world, segments_before, info.flush_needed)


def new_leader(world: LogWorld) -> None:
    """Another epoch begins, sometimes before its first record."""
    world.leader_epoch += world.random.choice((1, 1, 3))
    if world.random.random() < 0.5:
        world.log.assign_epoch(world.leader_epoch, world.log.log_end_offset)
        world.model.assign_epoch(world.leader_epoch, world.model.log_end)


def roll(world: LogWorld) -> None:
    before = len(world.log.segments)
    world.log.roll()
    world.counts["rolls"] += len(world.log.segments) - before
    after_roll(world)


# -- reading


def read(world: LogWorld) -> None:
    log, model, random = world.log, world.model, world.random
    if log.log_start_offset != model.log_start:
        return  # retention is under way
    offset = random.randint(model.log_start - 1, min(model.log_end + 1, model.log_start + 2_000))
    isolation = random.choice(tuple(Isolation))
    max_bytes, at_least_one = random.choice((0, 1, 100, 600, 5000)), random.random() < 0.7
    if not model.log_start <= offset <= model.log_end:
        try:
            log.read(offset, max_bytes, isolation, at_least_one)
        except KafkaError as error:
            checks.same("the error of a read", error.code, ErrorCode.OFFSET_OUT_OF_RANGE)
            return
        raise AssertionError(f"offset {offset} was read, the log has {model.log_start} to {model.log_end}")
    info = log.read(offset, max_bytes, isolation, at_least_one)
    bound = {
        Isolation.LOG_END: model.log_end,
        Isolation.HIGH_WATERMARK: model.high_watermark,
        Isolation.COMMITTED: log.last_stable_offset,
    }[isolation]
    readable = [batch for batch in model.visible() if batch.last_offset >= offset and batch.last_offset < bound]
    data = b"" if info.records is None else info.records.read()
    got = [checks.parse_cached(bytes(view.data)) for view in whole_batches(data)]
    if world.allowed is not None and world.allowed.compacting:
        checks.check_some(got, readable)
        return
    checks.check_batches(got, readable[: len(got)])
    if at_least_one and readable and offset < bound:
        assert got, f"nothing was read at {offset}, where {readable[0]} was due"
        first_size = len(next(iter(whole_batches(data))).data)
        assert len(data) <= max(max_bytes, first_size), f"{len(data)} bytes for a limit of {max_bytes}"
    elif not at_least_one:
        assert len(data) <= max_bytes
    assert info.first_batch_incomplete == (bool(readable) and not got and info.records is not None)
    world.counts["reads"] += 1


def look_up_time(world: LogWorld) -> None:
    log, model, random = world.log, world.model, world.random
    records = model.records()
    timestamp = world.clock.now_ms() - random.randrange(100_000)
    if records and random.random() < 0.8:
        timestamp = random.choice(records).timestamp + random.choice((-1, 0, 0, 1))
    if timestamp < 0:
        return
    found, expected = log.offset_for_time(timestamp), model.first_by_time(timestamp)
    checks.same(
        f"the first record from time {timestamp} on",
        None if found is None else (found.offset, found.timestamp),
        None if expected is None else (expected.offset, expected.timestamp),
    )
    world.counts["time lookups"] += 1


def look_up_aborted(world: LogWorld) -> None:
    model, random = world.model, world.random
    start = random.randint(model.log_start, model.log_end)
    checks.check_aborted(world.log, model, start, random.randint(start, model.log_end))
    checks.check_committed(world.log, model)


# -- watermarks, time, flushing


def raise_high_watermark(world: LogWorld) -> None:
    model = world.model
    ends = [batch.next_offset for batch in model.batches if batch.next_offset >= model.high_watermark]
    target = world.random.choice([*ends[:5], model.log_end, model.log_end])
    world.log.increment_high_watermark(target)
    model.high_watermark = max(model.high_watermark, target)


def move_high_watermark(world: LogWorld) -> None:
    """Set it to any offset, as a replica that becomes leader may have to."""
    model = world.model
    world.set_high_watermark(world.random.randint(model.log_start, min(model.log_end, model.log_start + 5000)))


def advance_clock(world: LogWorld) -> None:
    world.clock.advance(world.random.choice((1, 100, 3_000, 20_000)))
    if world.random.random() < 0.06:
        world.clock.advance(EXPIRATION_MS // 2)


def flush(world: LogWorld) -> None:
    flush_up_to(world, world.random.randint(0, world.model.log_end + 1) if world.random.random() < 0.3 else None)


def flush_up_to(world: LogWorld, up_to: int | None) -> None:
    promised = world.model.log_end if up_to is None else min(world.model.log_end, up_to)
    with world.interleaving():
        assert world.run(world.log.flush(up_to)) >= promised
    world.flushed = max(world.flushed, promised)
    world.save_recovery_point()
    world.counts["flushes"] += 1


def expire_producers(world: LogWorld) -> None:
    now_ms = world.clock.now_ms()
    model = world.model
    expired = [
        key
        for key, known in model.producers.items()
        if known.transaction_first is None and now_ms - known.last_timestamp >= EXPIRATION_MS
    ]
    checks.same("producers expired", world.log.producers.remove_expired(now_ms, EXPIRATION_MS), len(expired))
    model.adopt({key: known for key, known in model.producers.items() if key not in expired})
