"""Records in groups that share their kind of timestamp and their leader epoch."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.consume.formatters import TIMESTAMP_TYPES, group_records
from ottla.client.consumer.record import ConsumerRecord


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=20))
def test_groups_share_what_is_printed_once(shared: list[tuple[int, int]]) -> None:
    epoch = 0
    records: list[ConsumerRecord[bytes | None, bytes | None]] = []
    for offset, (timestamp_type, step) in enumerate(shared):
        epoch += step  # epochs never go down
        records.append(ConsumerRecord("orders", 0, offset, timestamp_type=timestamp_type, leader_epoch=epoch))
    groups = list(group_records(records))
    assert [record.offset for group in groups for record in group.records] == list(range(len(records)))
    for group in groups:
        assert {TIMESTAMP_TYPES[record.timestamp_type] for record in group.records} == {group.timestamp_type}  # type: ignore[union-attr]
        assert {record.leader_epoch for record in group.records} == {group.leader_epoch}  # type: ignore[union-attr]
