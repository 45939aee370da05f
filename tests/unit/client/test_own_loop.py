"""An asyncio client is used on one event loop; on another one it says so instead of waiting forever."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla import aio
from ottla.client.own_loop import check_loop
from ottla.errors import IllegalStateError
from ottla.testing import Broker


def test_only_another_running_loop_is_refused() -> None:
    async def check(own: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        check_loop(own, "producer")
        check_loop(asyncio.get_running_loop(), "producer")
        return asyncio.get_running_loop()

    closed = asyncio.run(check(None))
    check_loop(closed, "producer")
    with pytest.raises(IllegalStateError, match=r"this producer is used on another event loop: .* which is closed"):
        asyncio.run(check(closed))


USES: list[tuple[Callable[[str], Any], Callable[[Any], Awaitable[object]]]] = [
    (aio.Producer, lambda producer: producer.send("t", b"v")),
    (aio.Producer, lambda producer: producer.flush()),
    (lambda where: aio.Consumer(where, group_id="g"), lambda consumer: consumer.list_topics()),
    (aio.Admin, lambda admin: admin.list_topics()),
]


@pytest.mark.parametrize(("make", "use"), USES)
def test_clients_refuse_another_loop(make: Callable[[str], Any], use: Callable[[Any], Awaitable[object]]) -> None:
    """As with a fixture of pytest-asyncio whose scope is wider than its loop's."""
    with Broker() as broker:
        client = make(broker.bootstrap_servers)
        own = asyncio.new_event_loop()
        own.run_until_complete(use(client))
        assert client.metrics()

        async def use_elsewhere() -> None:
            for call in (use, lambda client: client.close()):
                with pytest.raises(IllegalStateError, match="another event loop"):
                    await call(client)

        asyncio.run(use_elsewhere())
        own.run_until_complete(client.close())
        own.close()
