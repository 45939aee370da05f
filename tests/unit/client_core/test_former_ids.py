"""Former topic ids: which answers count, for how long others are ignored, and what is remembered."""

import pytest

from ottla.client_core.metadata import IDS_MAX, IGNORED_MS_MAX, TOPICS_MAX, FormerIds
from ottla.ids import ZERO_UUID, Uuid

OLD, NEW, OTHER = (Uuid(each * 16) for each in (b"o", b"n", b"x"))


def replaced() -> FormerIds:
    """The topic had the id OLD and has the id NEW."""
    former = FormerIds()
    former.forgotten("t", OLD)
    assert former.takes("t", NEW, None, 0)
    return former


def test_every_id_of_a_topic_without_former_ids_is_taken() -> None:
    former = FormerIds()
    assert former.takes("t", OLD, None, 0)
    assert former.takes("t", NEW, OLD, 0)


def test_a_replaced_id_is_ignored_and_others_are_taken() -> None:
    former = replaced()
    assert not former.takes("t", OLD, NEW, 0)
    assert former.takes("t", NEW, NEW, 0)
    assert former.takes("t", OTHER, NEW, 0)
    assert former.takes("u", OLD, NEW, 0), "another topic"


def test_a_topic_that_is_back_with_the_same_id_is_taken() -> None:
    former = FormerIds()
    former.forgotten("t", OLD)
    assert former.takes("t", OLD, None, 0)
    assert len(former) == 0


def test_a_replaced_id_is_taken_when_only_it_is_answered_for_long() -> None:
    former = replaced()
    assert not former.takes("t", OLD, NEW, 1_000)
    assert not former.takes("t", OLD, NEW, 999 + IGNORED_MS_MAX)
    assert former.takes("t", OLD, NEW, 1_000 + IGNORED_MS_MAX)
    former.forgotten("t", NEW)
    assert not former.takes("t", NEW, OLD, 1_000 + IGNORED_MS_MAX)


def test_an_answer_with_the_known_id_starts_the_time_over() -> None:
    former = replaced()
    assert not former.takes("t", OLD, NEW, 1_000)
    assert former.takes("t", NEW, NEW, 2_000)
    assert not former.takes("t", OLD, NEW, 1_000 + IGNORED_MS_MAX)


@pytest.mark.parametrize("known", [None, ZERO_UUID])
def test_brokers_without_topic_ids_replace_no_id(known: Uuid | None) -> None:
    former = FormerIds()
    former.forgotten("t", OLD)
    assert former.takes("t", ZERO_UUID, OLD, 0)
    former.forgotten("t", ZERO_UUID)
    assert former.takes("t", OLD, known, 0)


def test_memory_is_bounded() -> None:
    former = FormerIds()
    for number in range(2 * TOPICS_MAX):
        former.forgotten(f"t-{number}", OLD)
    assert len(former) == TOPICS_MAX
    ids = [Uuid(bytes([number]) * 16) for number in range(1, IDS_MAX + 2)]
    for each in ids:
        former.forgotten("t", each)
    assert former.takes("t", ids[0], NEW, 0), "the oldest is forgotten"
    assert not former.takes("t", ids[1], NEW, 0)
    assert len(former) == TOPICS_MAX
