"""The rules that make a log shorter: truncation, deletion, retention, compaction."""

from tests.model.partition_log import checks
from tests.model.partition_log.model import Batch
from tests.model.partition_log.world import LogWorld

from ottla.log.compaction.compactor import candidate_of
from ottla.log.names import LOG_SUFFIX
from ottla.log.retention import apply_retention
from ottla.log.segments.segment import Segment


def truncate(world: LogWorld) -> None:
    """Cut off the end, mostly above the high watermark, as a follower of a new leader does."""
    model, log = world.model, world.log
    target, end = truncation_target(world)
    world.intend(end_min=end)
    was_cut = world.run(log.truncate_to(target))
    world.done()
    checks.same("truncation", was_cut, target < model.log_end)
    after_truncation(world, end)


def truncation_target(world: LogWorld) -> tuple[int, int]:
    """An offset to truncate to, and where the log then ends."""
    model, random = world.model, world.random
    floor = model.high_watermark if random.random() < 0.7 else max(model.log_start, model.high_watermark - 30)
    target = random.randint(min(floor, model.log_end), min(model.log_end + 1, floor + 3000))
    holding = next((b for b in model.batches if b.base_offset <= target <= b.last_offset), None)
    return target, min(model.log_end, target if holding is None else holding.base_offset)


def after_truncation(world: LogWorld, end: int) -> None:
    model = world.model
    world.save_recovery_point()
    if end < model.log_end:
        world.counts["truncations"] += 1
        model.cut(end)
        world.saved_start = min(world.saved_start, model.log_start)
        world.flushed = min(world.flushed, end)
        world.indexes_sure_from = end
        world.settle_producers()
        world.exact_lso = False
        world.run(world.compactor.truncated(world.log))
    else:
        model.epochs = [entry for entry in model.epochs if entry[1] < model.log_end]
    checks.check_epochs(world.log, model)


def truncate_fully(world: LogWorld) -> None:
    model = world.model
    offset = max(0, model.log_end + world.random.choice((-20, 0, 10, 1000)))
    world.intend(end_min=0, truncating_fully=True)
    world.run(world.log.truncate_fully_and_start_at(offset))
    world.done()
    model.restart_at(offset, offset)
    world.save_recovery_point()
    world.save_start()
    world.flushed = min(world.flushed, offset)
    world.epochs_sure_from, world.indexes_sure_from = 0, offset
    world.run(world.compactor.truncated(world.log))
    world.counts["truncations"] += 1


def delete_records(world: LogWorld) -> None:
    model = world.model
    offset = world.random.randint(model.log_start, min(model.high_watermark, model.log_start + 60))
    checks.same("delete_records", world.log.delete_records(offset), offset > model.log_start)
    if offset > model.log_start:
        model.start_at(offset)
        world.counts["delete_records"] += 1
    if world.random.random() < 0.5:
        world.save_start()
        world.save_recovery_point()


def delete_due_files(world: LogWorld) -> None:
    world.run(world.log.delete_due_files())


def retain(world: LogWorld) -> None:
    """Delete exactly the segments that time, size and the log start offset make due."""
    log, model = world.log, world.model
    now_ms = world.clock.now_ms()
    segments = [*log.segments]
    ends = [segment.base_offset for segment in segments[1:]] + [model.log_end]
    due = 0
    while due < len(segments) and is_due(world, segments[due:], ends[due], now_ms):
        due += 1
    start = max(model.log_start, ends[due - 1] if due else 0)
    world.intend(start_max=start)
    with world.interleaving():
        gone = world.run(apply_retention(log, now_ms))
    world.done()
    checks.same("segments deleted", [each.segment.base_offset for each in gone], [s.base_offset for s in segments[:due]])
    if start > model.log_start:
        model.start_at(start)
    model.forget_below(log.segments.first.base_offset)
    world.counts["segments deleted by retention"] += len(gone)
    if world.random.random() < 0.5:
        world.save_start()


def is_due(world: LogWorld, segments: list[Segment], end: int, now_ms: int) -> bool:
    """Whether retention has to delete the first of `segments`, which ends at `end`."""
    model, config, segment = world.model, world.config, segments[0]
    is_active = len(segments) == 1
    if end > model.high_watermark or (is_active and not segment.size):
        return False
    if end <= model.log_start and not is_active:
        return True
    if not config.delete:
        return False
    if 0 <= config.retention_bytes <= sum(each.size for each in segments[1:]):
        return True
    times = [b.max_timestamp for b in model.batches if segment.base_offset <= b.base_offset < end]
    newest = max(times, default=-1)
    if newest < 0:
        newest = world.disk.modified_ms(segment.path(LOG_SUFFIX))
    return 0 <= config.retention_ms < now_ms - newest


# -- compaction


def compact(world: LogWorld) -> None:
    """One compaction pass over all that can be cleaned, whether it is due or not."""
    log, model = world.log, world.model
    candidate = candidate_of(log, world.compactor.checkpoint_of(log), world.clock.now_ms())
    if not world.config.compact or not candidate.cleanable_bytes:
        return
    uncleanable = candidate.first_uncleanable_offset
    assert uncleanable <= min(model.last_stable_bounds()[1], log.segments.active.base_offset), f"too far: {candidate}"
    last_before = last_of_producers(world)
    model.cleaned_from = max(model.cleaned_from, model.log_start)
    model.cleaned_up_to = max(model.cleaned_up_to, uncleanable)
    world.intend(compacting=True)
    with world.interleaving():
        stats = world.run(world.compactor.compact(candidate))
    world.done()
    assert stats is not None, f"compaction gave up: {world.compactor.uncleanable}"
    before, after = list(model.batches), checks.read_files(log)
    checks.check_compacted(before, after, model)
    checks.check_batches(
        [batch for batch in after if batch.base_offset >= uncleanable],
        [batch for batch in before if batch.base_offset >= uncleanable],
    )
    check_thorough(world, before, after, candidate.first_dirty_offset, stats.end_offset)
    left = {batch.last_offset for batch in after}
    for batch in before:
        # The last batch of a producer holds its sequence; the last batch of the cleaned range holds its end offset.
        must_stay = batch.last_offset in last_before and batch.last_offset in last_of_producers(world)
        if must_stay or batch.next_offset == uncleanable:
            assert batch.last_offset in left, f"compaction removed a batch that must stay, at least empty: {batch}"
    model.batches = after
    world.counts["compactions"] += 1
    if sum(len(batch.records) for batch in after) < sum(len(batch.records) for batch in before):
        world.counts["compactions that removed records"] += 1


def last_of_producers(world: LogWorld) -> set[int]:
    """The last offsets of the last batches of the producers that are known."""
    return {known.sent[-1].last_offset for known in world.model.producers.values() if known.sent}


def check_thorough(world: LogWorld, before: list[Batch], after: list[Batch], first_dirty: int, end: int) -> None:
    """Below `end`, exactly the required records are left, and tombstones have their delete horizon."""
    model, now_ms = world.model, world.clock.now_ms()
    new_horizon_ms = now_ms + world.config.delete_retention_ms
    last: dict[bytes, int] = {}
    for batch in before:
        if not batch.is_control and not model.is_aborted(batch):
            last.update((r.key, r.offset) for r in batch.records if r.key is not None and first_dirty <= r.offset < end)
    left = {batch.base_offset: batch for batch in after}
    for batch in before:
        if batch.base_offset >= end or batch.base_offset < model.log_start:
            continue
        now = left.get(batch.base_offset)
        if batch.is_control:
            check_marker(world, before, batch, now)
            continue
        is_over = batch.delete_horizon_ms is not None and batch.delete_horizon_ms <= now_ms
        kept = [
            record
            for record in batch.records
            if record.offset >= end or (record.key is not None and last.get(record.key, -1) <= record.offset)
            if record.offset >= end or record.value is not None or not is_over
        ]
        if model.is_aborted(batch):
            kept = []
        checks.same(f"what compaction left of {batch}", [] if now is None else list(now.records), kept)
        if any(record.value is None for record in kept):
            assert now is not None
            due = new_horizon_ms if batch.delete_horizon_ms is None else batch.delete_horizon_ms
            checks.same(f"the delete horizon of {now}", now.delete_horizon_ms, due)


def check_marker(world: LogWorld, before: list[Batch], marker: Batch, now: Batch | None) -> None:
    """A marker stays as long as a batch of its transaction is there; after that, until its delete horizon."""
    if not marker.records:
        return
    own = [b for b in before if b.producer_id == marker.producer_id and b.transactional and b.base_offset < marker.base_offset]
    ends = [index for index, batch in enumerate(own) if batch.is_control and batch.records]
    data = [batch for batch in own[ends[-1] + 1 if ends else 0 :] if not batch.is_control]
    known = {txn.last_offset for txn in world.model.transactions if txn.first_offset >= world.model.log_start}
    forgotten = any(batch.commits is False and batch.base_offset not in known for batch in own)
    if forgotten or (data and marker.base_offset not in known):
        return  # a start may forget transactions that began before the log start offset; their markers are kept for longer
    is_needed = bool(data)
    now_ms = world.clock.now_ms()
    horizon_ms = marker.delete_horizon_ms
    if is_needed or horizon_ms is None or horizon_ms > now_ms:
        assert now is not None, f"a marker is gone: {marker}"
        checks.same("a marker", now.records, marker.records)
        due = horizon_ms if horizon_ms is not None or is_needed else now_ms + world.config.delete_retention_ms
        checks.same(f"the delete horizon of {marker}", now.delete_horizon_ms, due)
    else:
        assert now is None or not now.records, f"a marker is still there, its delete horizon is over: {marker}"
