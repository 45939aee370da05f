"""A member's identity: when it counts as a member, and what forgetting leaves."""

from __future__ import annotations

from ottla.client_core.group.identity import NO_GENERATION, Identity


def test_new_identity_is_no_member() -> None:
    identity = Identity("g", None)
    assert not identity.is_member
    assert identity.now == ("", NO_GENERATION)


def test_generation_makes_it_a_member() -> None:
    identity = Identity("g", "i", "m")
    identity.generation = 0
    assert identity.is_member, "KIP-848 joins with epoch 0"


def test_now_differs_after_a_change_of_either_part() -> None:
    identity = Identity("g", None, "m")
    seen = {identity.now}
    identity.generation = 1
    seen.add(identity.now)
    identity.member_id = "n"
    seen.add(identity.now)
    assert len(seen) == 3


def test_forgetting_drops_the_generation_and_the_id_unless_it_is_kept() -> None:
    identity = Identity("g", "i", "m")
    identity.generation = 4
    identity.forget(keeps_id=True)
    assert (identity.member_id, identity.is_member) == ("m", False)
    identity.generation = 4
    identity.forget()
    assert (identity.member_id, identity.is_member) == ("", False)
    assert (identity.group_id, identity.group_instance_id) == ("g", "i")
