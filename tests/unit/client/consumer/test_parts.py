"""How a consumer's machines are put together."""

from typing import Any

import pytest

from ottla.client.consumer.parts import Parts
from ottla.client.world import real_client_world
from ottla.config.client import consumer_settings


def made(**keywords: Any) -> Parts:
    settings = consumer_settings("localhost:9", None, keywords)
    return Parts(real_client_world(), settings, lambda: None, lambda fault: None)


@pytest.mark.asyncio
async def test_without_a_group_nothing_looks_for_a_coordinator() -> None:
    parts = made()
    assert (parts.finder, parts.commits, parts.committed) == (None, None, None)
    assert parts.fetcher in parts.runner._machines
    parts.close()


@pytest.mark.asyncio
async def test_metadata_comes_last_and_positions_first() -> None:
    parts = made(group_id="g")
    machines = parts.runner._machines
    assert machines[0] is parts.positions
    assert machines[-1] is parts.metadata
    assert machines.index(parts.commits) < machines.index(parts.finder)  # type: ignore[arg-type]
    parts.close()
