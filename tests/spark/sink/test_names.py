"""Transactional ids: written, read, and used again only for a later batch."""

from __future__ import annotations

from ottla.spark.sink import protocol
from ottla.spark.sink.protocol import IdPool, SinkId, driver_id, parse_id, query_prefix, task_id

QUERY = "9beb7911-a21b-41be-a3c6-b0cbcb76d6e5"


def test_ids_are_read_as_they_were_written() -> None:
    assert parse_id(task_id(QUERY, "50285e9f1a88", 3)) == SinkId(QUERY, "50285e9f1a88", 3)
    assert parse_id(driver_id(QUERY)) == SinkId(QUERY, "driver", 0)
    assert all(each.startswith(query_prefix(QUERY)) for each in (task_id(QUERY, "w", 0), driver_id(QUERY)))


def test_ids_of_others_are_no_sink_ids() -> None:
    assert [parse_id(each) for each in ("payments-1", "ottla-sink.", "ottla-sink.a.b.c", "ottla-sink.a.b.1.2")] == [None] * 4


def test_an_id_is_used_again_only_by_a_later_batch() -> None:
    pool = IdPool("w")
    first = [pool.take(QUERY, 7) for _ in range(2)]
    assert first == [task_id(QUERY, "w", 0), task_id(QUERY, "w", 1)]
    # A replay of batch 7, or a late attempt of it, must not touch what batch 7 may have decided.
    assert pool.take(QUERY, 7) == task_id(QUERY, "w", 2)
    assert pool.take(QUERY, 6) == task_id(QUERY, "w", 3)
    assert sorted(pool.take(QUERY, 8) for _ in range(4)) == [task_id(QUERY, "w", number) for number in range(4)]
    assert pool.take("another", 0) == task_id("another", "w", 0)


def test_forgotten_ids_are_not_made_again() -> None:
    pool = IdPool("w")
    made = {pool.take(f"query{number}", 0) for number in range(protocol.QUERIES_MAX + 1)}
    made |= {pool.take(f"query{number}", 0) for number in range(protocol.QUERIES_MAX)}
    assert len(made) == 2 * protocol.QUERIES_MAX + 1


def test_two_workers_share_no_id() -> None:
    assert IdPool().take(QUERY, 0) != IdPool().take(QUERY, 0)
