"""The metadata of a stored record."""

from ottla.client_core.producer.delivery import UNKNOWN_OFFSET, RecordMetadata


def test_metadata_is_a_tuple_with_names() -> None:
    metadata = RecordMetadata("t", 1, UNKNOWN_OFFSET, 5)
    assert metadata == ("t", 1, -1, 5)
    assert (metadata.topic, metadata.partition, metadata.offset, metadata.timestamp) == metadata
