"""What a node tells its service manager, and when."""

import asyncio
import time

from ottla.broker.supervision import Supervision


class Manager:
    """A service manager that keeps what it is told; while `is_full`, it takes nothing."""

    def __init__(self, watchdog_s: float | None = None) -> None:
        self.watchdog_s = watchdog_s
        self.told: list[str] = []
        self.told_s: list[float] = []
        self.is_full = False

    def tell(self, message: str) -> bool:
        if not self.is_full:
            self.told.append(message)
            self.told_s.append(time.monotonic())
        return not self.is_full

    async def heard(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.told) < count:
                await asyncio.sleep(0.01)


def test_a_start_tells_what_it_does_and_asks_for_time_while_logs_are_opened() -> None:
    async def scenario() -> None:
        manager, opened = Manager(), iter([0, 12, 12, 340])
        supervision = Supervision(manager)
        supervision.starting = lambda: ("reading the metadata log", False)
        supervision.begin()
        assert manager.told == ["STATUS=reading the metadata log"]
        supervision.starting = lambda: (f"recovering {next(opened, 340)}/340 logs", True)
        await manager.heard(5)
        supervision.ready("node 1")
        supervision.close()
        extension = "EXTEND_TIMEOUT_USEC=60000000"
        assert manager.told[1:5] == [
            f"{extension}\nSTATUS=recovering 0/340 logs",
            f"{extension}\nSTATUS=recovering 12/340 logs",
            extension,
            f"{extension}\nSTATUS=recovering 340/340 logs",
        ]
        assert manager.told[-1] == "READY=1\nSTATUS=node 1"

    asyncio.run(scenario())


def test_a_loop_that_is_held_does_not_feed_the_watchdog() -> None:
    async def scenario() -> None:
        manager = Manager(watchdog_s=0.1)
        supervision = Supervision(manager)
        supervision.begin()
        await manager.heard(4)
        assert manager.told[1:] == ["WATCHDOG=1"] * (len(manager.told) - 1)
        fed = len(manager.told)
        time.sleep(0.4)  # the loop is held
        assert len(manager.told) == fed
        await manager.heard(fed + 1)
        supervision.close()
        assert manager.told_s[fed] - manager.told_s[fed - 1] > 0.35

    asyncio.run(scenario())


def test_a_message_that_is_not_taken_is_told_again_in_its_order() -> None:
    async def scenario() -> None:
        manager = Manager()
        supervision = Supervision(manager)
        supervision.begin()
        manager.is_full = True
        supervision.ready("node 1")
        supervision.reloading()
        assert manager.told == ["STATUS=starting"]
        manager.is_full = False
        await manager.heard(3)
        assert manager.told[1] == "READY=1\nSTATUS=node 1"
        assert manager.told[2].startswith("RELOADING=1\nMONOTONIC_USEC=")
        supervision.close()

    asyncio.run(scenario())


def test_a_stop_is_told_once_and_nothing_is_ready_after_it() -> None:
    async def scenario() -> None:
        manager = Manager()
        supervision = Supervision(manager)
        supervision.begin()
        supervision.stopping()
        supervision.ready("of a reload that ends late")
        supervision.stopping()
        supervision.close()
        assert manager.told == ["STATUS=starting", "STOPPING=1\nSTATUS=stopping: handing over partitions, closing logs"]

    asyncio.run(scenario())


def test_the_reason_of_a_failure_stays_the_status() -> None:
    async def scenario() -> None:
        manager = Manager()
        supervision = Supervision(manager)
        supervision.begin()
        supervision.failed(OSError("all log directories have failed"))
        supervision.stopping()
        supervision.close()
        assert manager.told[1:] == ["STATUS=all log directories have failed", "STOPPING=1"]

    asyncio.run(scenario())


def test_nothing_happens_without_a_manager() -> None:
    async def scenario() -> None:
        supervision = Supervision(None)
        supervision.begin()
        supervision.ready("node 1")
        supervision.reloading()
        supervision.stopping()
        supervision.close()
        assert not [each for each in asyncio.get_running_loop()._scheduled if not each.cancelled()]  # type: ignore[attr-defined]

    asyncio.run(scenario())
