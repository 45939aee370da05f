"""New ids beyond a node's limit are refused, known ones are not; the text names setting and count."""

import pytest

from ottla.coordinator.id_limit import IdLimit
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode


def test_a_new_id_is_refused_at_the_limit() -> None:
    known = {"a", "b"}
    said: list[str] = []
    limit = IdLimit("ottla.max.groups", 3, lambda: len(known), ErrorCode.GROUP_MAX_SIZE_REACHED, said.append)
    limit.check_room("the group c")
    known.add("c")
    text = r"^the group d is refused: this node has 3 already, and ottla\.max\.groups is 3"
    with pytest.raises(KafkaError, match=text) as refused:
        limit.check_room("the group d")
    assert refused.value.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert said == [str(refused.value)]
    known.discard("a")
    limit.check_room("the group d")


def test_without_a_host_there_is_no_limit() -> None:
    IdLimit().check_room("anything")
