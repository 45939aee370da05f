"""The world of a client: one value that names its parts."""

import asyncio

from ottla.client.world import ClientWorld, real_client_world


def test_a_part_can_be_replaced() -> None:
    world = real_client_world()
    clock = real_client_world().clock
    assert world._replace(clock=clock) == (clock, world.network, world.randomness, world.threads, world.tokens)


# The world of a client that is given none: it works with the operating system.


def test_the_real_world_has_all_parts() -> None:
    world = real_client_world()
    assert isinstance(world, ClientWorld)
    assert world.clock.monotonic_s() <= world.clock.monotonic_s()
    assert 0 <= world.randomness.below(10) < 10
    thread = world.threads.start_loop("test")
    assert thread.call(lambda: asyncio.sleep(0, "ran")) == "ran"
    thread.stop(5)
