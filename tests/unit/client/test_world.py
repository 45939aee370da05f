"""The world of a client: one value that names its parts."""

from ottla.client.real_world import real_client_world


def test_a_part_can_be_replaced() -> None:
    world = real_client_world()
    clock = real_client_world().clock
    assert world._replace(clock=clock) == (clock, world.network, world.randomness, world.threads, world.tokens)
