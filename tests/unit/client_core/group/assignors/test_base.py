"""The base class of assignors: its defaults, and the example that its docstring shows."""

from __future__ import annotations

import textwrap

import pytest

from ottla.client_core.group.assignors import base
from ottla.client_core.group.assignors.base import NO_GENERATION, Assignor, MemberSubscription, RebalanceProtocol
from ottla.ids import TopicPartition

NO_RACKS: frozenset[str] = frozenset()


def test_assignor_without_assign_cannot_be_made() -> None:
    class Unfinished(Assignor):
        name = "unfinished"

    with pytest.raises(TypeError, match="assign"):
        Unfinished()  # type: ignore[abstract]


def test_example_of_the_docstring_gives_everything_to_the_first_member() -> None:
    example = textwrap.dedent(str(base.__doc__).split("`assign`:\n")[1].split("\nAll members")[0])
    names: dict[str, type[Assignor]] = {}
    exec(example, {"Assignor": Assignor, "TopicPartition": TopicPartition}, names)
    assignor = names["EverythingToOne"]()
    members = [MemberSubscription("b", ("t",)), MemberSubscription("a", ("t",))]
    assert assignor.assign(members, {"t": [NO_RACKS] * 2}) == {"a": [("t", 0), ("t", 1)], "b": []}
    assert assignor.protocols == (RebalanceProtocol.EAGER,)
    assert assignor.subscription_user_data(frozenset({"t"})) is None


def test_cooperative_is_the_higher_protocol() -> None:
    assert max(RebalanceProtocol) is RebalanceProtocol.COOPERATIVE
    assert [protocol.value for protocol in RebalanceProtocol] == [0, 1], "the numbers are Kafka's"


def test_member_that_says_only_its_topics_owns_nothing() -> None:
    member = MemberSubscription("m", ("t",))
    assert (member.owned, member.generation, member.rack) == ((), NO_GENERATION, None)
