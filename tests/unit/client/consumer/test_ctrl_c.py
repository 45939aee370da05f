"""Ctrl-C at every moment of reading: no record is lost or handed out twice, by polls, iterations and both mixed."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ottla.client.consumer import sync
from ottla.client.consumer.sync import Consumer
from ottla.testing import Broker

LONG = 60.0
FILES = {str(Path(sync.__file__).with_name(name)) for name in ("sync.py", "guard.py", "reader.py")}
COUNT = 20


class Interrupt:
    """Raises KeyboardInterrupt where Python looks for signals: as a function begins, and as a built-in one has ended."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_return") and frame.f_code.co_filename in FILES:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def read_some(consumer: Consumer[bytes, bytes], first: Iterator[Any], second: Iterator[Any], found: list[Any]) -> None:
    """An iteration that is broken off, polls, and an iteration again."""
    for record in first:
        found.append(record)
        if len(found) >= 3:
            break
    found += consumer.poll(LONG, max_records=1)
    for batch in consumer.batches(LONG, max_records=4).values():
        found += batch
    for record in second:
        found.append(record)
        if len(found) >= 14:
            break


def places(records: list[Any]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in records)


def test_ctrl_c_at_any_moment_loses_nothing(broker: Broker, topic: str) -> None:
    interrupted = 0
    with Consumer[bytes, bytes](broker.bootstrap_servers, max_poll_records=6, fetch_max_wait_ms=1) as consumer:
        consumer.assign((topic, 0), (topic, 1))
        for moment in itertools.count(1):
            consumer.seek((topic, 0), 0)
            consumer.seek((topic, 1), 0)
            found: list[Any] = []
            interrupt = Interrupt(moment)
            first, second = iter(consumer), iter(consumer)
            sys.setprofile(interrupt)
            try:
                read_some(consumer, first, second, found)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.setprofile(None)
            while len(found) < COUNT:
                more = consumer.poll(LONG)
                assert more, f"records are lost after Ctrl-C at moment {moment}: {places(found)}"
                found += more
            assert places(found) == [(partition, offset) for partition in range(2) for offset in range(10)], moment
            for partition in range(2):
                offsets = [record.offset for record in found if record.partition == partition]
                assert offsets == sorted(offsets), moment
            if interrupt.left > 0:
                break
    assert interrupted > 50


@pytest.mark.parametrize("count", [1, 5, 6])
def test_a_poll_goes_on_after_a_broken_off_iteration(face: Any, broker: Broker, topic: str, count: int) -> None:
    with face(broker.bootstrap_servers, auto_offset_reset="earliest", max_poll_records=6) as consumer:
        consumer.assign((topic, 0))
        found = list(itertools.islice(consumer, count))
        found += consumer.poll(LONG, max_records=2)
        found += itertools.islice(consumer, 1)
        assert len(found) > count + 1
        assert [record.offset for record in found] == list(range(len(found)))


def test_a_failed_conversion_gives_the_records_back(
    face: Any, broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(views: Any, spare: Any) -> Any:
        raise MemoryError

    with face(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign((topic, 0))
        with monkeypatch.context() as patch:
            patch.setattr("ottla.client.consumer.columns.to_all_columns", fail)
            with pytest.raises(MemoryError):
                consumer.consume_columns(LONG)
        assert consumer.position((topic, 0)) == 0
        [found] = consumer.consume_columns(LONG).values()
        assert found.rows == 10
