"""Buffers are used again only when nothing views them, within their limit."""

from ottla.records import spare_buffers
from ottla.records.spare_buffers import SPARE_BYTES_MAX, SPARE_BYTES_MIN, SpareBuffers

SIZE = 4 * SPARE_BYTES_MIN


def test_a_buffer_is_used_again_when_its_views_are_gone() -> None:
    spare = SpareBuffers()
    first = spare.take(SIZE)
    first[:4] = b"kept"
    part = first[:4]
    del first
    second = spare.take(SIZE)
    second[:4] = b"else"
    assert bytes(part) == b"kept"
    assert second.obj is not part.obj
    owner = part.obj
    del part
    third = spare.take(SIZE - 100)
    assert third.obj is owner
    assert len(third) == SIZE - 100


def test_a_buffer_of_another_size_is_left_alone() -> None:
    spare = SpareBuffers()
    owner = spare.take(SIZE).obj
    assert spare.take(SIZE + 1).obj is not owner
    assert spare.take(SIZE // 2 - 1).obj is not owner
    assert spare.take(SIZE // 2).obj is owner


def test_small_buffers_are_not_kept() -> None:
    spare = SpareBuffers()
    assert len(spare.take(SPARE_BYTES_MIN - 1)) == SPARE_BYTES_MIN - 1
    assert len(spare.take(0)) == 0
    assert spare.kept_bytes == 0
    spare.take(SPARE_BYTES_MAX + 1)
    assert spare.kept_bytes == 0


def test_the_sum_of_all_is_bounded() -> None:
    spare = SpareBuffers()
    held = [spare.take(spare_buffers.SPARE_BYTES_MAX // 4) for _ in range(10)]
    assert spare.kept_bytes == SPARE_BYTES_MAX
    held[0][:1] = b"x"
    spare.clear()
    assert spare.kept_bytes == 0
    assert held[0][0] == ord("x")
