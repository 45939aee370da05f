"""Compaction of logs with batches that cannot be unpacked, or not on the event loop."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.logs.compaction_logs import committed_records

from ottla.env import OpenMode
from ottla.log.compaction.compactor import INLINE_UNPACKED_BYTES_MAX
from ottla.log.producers.append_checks import AppendOrigin
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.kernels import Record
from ottla.records.layout import HEADER_SIZE
from ottla.records.patch import set_crc
from ottla.records.reader import read_records


def unreadable(key: bytes) -> bytearray:
    """A batch with a right CRC whose records nobody can unpack."""
    batch = build_batch([Record(0, 0, key, b"value")], codec=Codec.ZSTD)
    batch[HEADER_SIZE + 8 :] = b"\xff" * (len(batch) - HEADER_SIZE - 8)
    set_crc(batch, 0, len(batch))
    return batch


@pytest.mark.parametrize("inline_bytes_max", [1 << 30, 0])
def test_a_batch_that_cannot_be_read_stays_and_is_named_once(
    harness: Any, inline_bytes_max: int, caplog: pytest.LogCaptureFixture
) -> None:
    harness.compactor.inline_bytes_max = inline_bytes_max
    harness.put((b"a", b"1"), (b"b", b"1"))
    poison = unreadable(b"b")
    harness.log.config = replace(harness.config, cleanup_policy=("delete",))  # compressed batches are not always unpacked there
    harness.log.append_as_leader(poison, 0, AppendOrigin.COORDINATOR)
    harness.log.config = harness.config
    harness.put((b"a", b"2"))
    harness.roll()
    with caplog.at_level("WARNING"):
        assert harness.compact().end_offset == 4
    (line,) = [record.message for record in caplog.records if record.name == "ottla.log"]
    assert "topic-0 left 1 unreadable batch as it is" in line
    assert "begins at offset 2" in line
    assert not harness.compactor.uncleanable
    data = harness.disk.open("/data/topic-0/00000000000000000000.log", OpenMode.READ).read(0, 10_000)
    batches = list(iterate_batches(data))
    assert [batch.base_offset for batch in batches] == [0, 2, 3]
    assert [record.key for record in read_records(batches[0])] == [b"b"]
    assert bytes(batches[1].payload) == bytes(BatchView(poison).payload)
    caplog.clear()
    harness.put((b"b", b"3" * 1000))
    harness.roll()
    assert harness.compact().end_offset == 5
    assert not [record for record in caplog.records if record.levelname == "WARNING"], "it has been named"


def test_a_batch_too_large_for_the_loop_is_left_to_a_helper(harness: Any, caplog: pytest.LogCaptureFixture) -> None:
    harness.put((b"a", bytes(INLINE_UNPACKED_BYTES_MAX)), codec=Codec.ZSTD)
    harness.put((b"a", b"2"))
    harness.roll()
    helpers = harness.compactor._helpers
    ran = []
    run = helpers.run
    helpers.run = lambda *job: (ran.append(job[0]), run(*job))[1]
    assert harness.compact() is None
    assert not ran
    assert not [name for name in harness.disk.list_directory("/data/topic-0") if "cleaned" in name]
    assert harness.compact().records_written == 1
    assert len(ran) == 1
    assert [(record.offset, record.value) for record in committed_records(harness.log)] == [(1, b"2")]
