"""The values that name committed offsets and members."""

from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata


def test_an_offset_alone_has_no_text_and_no_epoch() -> None:
    assert OffsetAndMetadata(5) == (5, "", None)


def test_a_group_id_alone_is_no_member() -> None:
    assert ConsumerGroupMetadata("g") == ("g", -1, "", None)
