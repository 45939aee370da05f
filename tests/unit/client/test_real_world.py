"""The world of a client that is given none: it works with the operating system."""

import asyncio

from ottla.client.real_world import real_client_world
from ottla.client.world import ClientWorld


def test_the_real_world_has_all_parts() -> None:
    world = real_client_world()
    assert isinstance(world, ClientWorld)
    assert world.clock.monotonic_s() <= world.clock.monotonic_s()
    assert 0 <= world.randomness.below(10) < 10
    thread = world.threads.start_loop("test")
    assert thread.call(lambda: asyncio.sleep(0, "ran")) == "ran"
    thread.stop(5)
