"""A broker's membership: what it reports about failed and cordoned directories, and when."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker import membership as membership_module
from ottla.broker.membership import CLOCKS_APART_MS, Membership, clock_warning
from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.partitions.assignments import Assignment, DirectoryAssignments
from ottla.errors import BrokenInvariant, KafkaError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.base import Message
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest

DIRECTORY = Uuid(bytes(range(16)))


class FakeController:
    """Counts what it is asked, and refuses if told to."""

    def __init__(self, refusal: OttlaError | None = None) -> None:
        self.requests: list[Any] = []
        self._refusal = refusal

    @property
    def asked(self) -> int:
        return len(self.requests)

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        self.requests.append(request)
        if self._refusal is not None:
            raise self._refusal
        return SimpleNamespace(broker_epoch=7, is_fenced=False)


class Applied:
    """Metadata that is applied up to offset 5."""

    published_offset = 6

    async def published_up_to(self, end_offset: int) -> None: ...


def member(controller: Any, epoch: int) -> Membership:
    membership = Membership(controller, Applied(), "cluster", 1)  # type: ignore[arg-type]  # the part of the loader that is used
    membership.epoch = epoch
    return membership


def test_directory_lost_before_registration_is_reported_later() -> None:
    controller = FakeController()
    membership = member(controller, epoch=-1)
    asyncio.run(membership.tell_lost(DIRECTORY))
    assert controller.asked == 0
    membership.epoch = 7
    asyncio.run(membership.tell_lost(DIRECTORY))
    assert controller.asked == 1


def test_cordoned_directories_are_reported_when_joining_and_changing() -> None:
    controller = FakeController()
    membership = member(controller, epoch=-1)

    async def scenario() -> None:
        await membership.join([], [DIRECTORY], [DIRECTORY], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)
        await membership.tell_cordoned([])

    asyncio.run(scenario())
    registration, *heartbeats = controller.requests
    assert isinstance(registration, BrokerRegistrationRequest)
    assert [each.cordoned_log_dirs for each in heartbeats] == [[DIRECTORY], []]


@pytest.mark.parametrize("refusal", [None, KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller")])
def test_registration_is_sent_again_until_the_controller_has_taken_it(refusal: KafkaError | None) -> None:
    controller = FakeController()
    membership = member(controller, epoch=-1)

    async def scenario() -> None:
        await membership.join([], [DIRECTORY], [], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)
        controller._refusal = refusal
        await membership.register_again()
        controller._refusal = None
        await membership.register_again()

    asyncio.run(scenario())
    kinds = [type(each) for each in controller.requests]
    once = [BrokerRegistrationRequest, BrokerHeartbeatRequest]
    assert kinds == (once * 2 if refusal is None else [*once, BrokerRegistrationRequest, *once])


def test_heartbeat_names_epoch_and_applied_metadata() -> None:
    controller = FakeController()
    asyncio.run(member(controller, epoch=7).tell_lost(DIRECTORY))
    [heartbeat] = controller.requests
    assert heartbeat == BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=7, current_metadata_offset=5, offline_log_dirs=[DIRECTORY], cordoned_log_dirs=[]
    )


def test_broker_whose_directory_fails_while_it_joins_is_unfenced_by_the_second_heartbeat() -> None:
    class Controller(FakeController):
        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            self.requests.append(request)
            return SimpleNamespace(broker_epoch=7, is_fenced=len(self.requests) < 3)

    async def scenario(lost: bool) -> Controller:
        controller = Controller()
        membership = member(controller, epoch=-1)
        if lost:
            await membership.tell_lost(DIRECTORY)
        await membership.join([], [DIRECTORY], [], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)
        return controller

    assert [each.offline_log_dirs for each in asyncio.run(scenario(lost=True)).requests[1:]] == [[DIRECTORY]] * 2
    with pytest.raises(BrokenInvariant, match="still fenced"):
        asyncio.run(scenario(lost=False))


def test_broker_of_a_controller_elsewhere_waits_to_be_unfenced_and_sends_heartbeats() -> None:
    class Controller(FakeController):
        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            self.requests.append(request)
            return SimpleNamespace(broker_epoch=7, is_fenced=len(self.requests) < 4, should_shut_down=True)

    async def scenario() -> None:
        controller = Controller()
        loader: Any = Applied()
        membership = Membership(controller, loader, "cluster", 1, heartbeat_interval_ms=5)
        await membership.join([], [DIRECTORY], [], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)
        registration, *heartbeats = controller.requests
        assert len(heartbeats) == 3, "fenced twice, then unfenced"
        assert {each.name: each.max_supported_version for each in registration.features}["share.version"] == 1
        while controller.asked < 6:
            await asyncio.sleep(0.001)
        await membership.leave()
        asked = controller.asked
        assert controller.requests[-1].want_shut_down
        await asyncio.sleep(0.02)
        assert controller.asked == asked, "no heartbeat after it has left"

    asyncio.run(scenario())


def test_first_heartbeat_waits_until_the_own_registration_is_applied() -> None:
    class Behind(Applied):
        def __init__(self) -> None:
            self.awaited: list[int] = []
            self.applied = asyncio.Event()

        async def published_up_to(self, end_offset: int) -> None:
            self.awaited.append(end_offset)
            await self.applied.wait()

    async def scenario() -> None:
        controller, loader = FakeController(), Behind()
        membership = Membership(controller, loader, "cluster", 1, heartbeat_interval_ms=60_000)  # type: ignore[arg-type]
        joining = asyncio.ensure_future(
            membership.join([], [DIRECTORY], [], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)
        )
        async with asyncio.timeout(30):
            while not loader.awaited:
                await asyncio.sleep(0)
            assert loader.awaited == [8], "the registration is the record at offset 7, the broker's epoch"
            assert controller.asked == 1
            loader.applied.set()
            await joining
        assert controller.asked == 2
        assert membership._heartbeats is not None
        membership._heartbeats.cancel()

    asyncio.run(scenario())


async def send_heartbeats(controller: FakeController, until_asked: int) -> None:
    """Join, send heartbeats until the controller was asked so often, and leave."""
    loader: Any = Applied()
    membership = Membership(controller, loader, "cluster", 1, heartbeat_interval_ms=5)
    await membership.join([], [DIRECTORY], [], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)
    async with asyncio.timeout(30):
        while controller.asked < until_asked:
            await asyncio.sleep(0.001)
    await membership.leave()


def test_heartbeats_go_on_after_an_unexpected_failure(caplog: pytest.LogCaptureFixture) -> None:
    class Controller(FakeController):
        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            self.requests.append(request)
            if self.asked == 3:
                raise ZeroDivisionError("a bug")
            return SimpleNamespace(broker_epoch=7, is_fenced=False, should_shut_down=True)

    asyncio.run(send_heartbeats(Controller(), 6))
    assert "sending heartbeats failed unexpectedly" in caplog.text
    assert "ZeroDivisionError: a bug" in caplog.text


def test_outage_of_the_controllers_is_logged_when_it_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    class Controller(FakeController):
        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            self.requests.append(request)
            if 3 <= self.asked < 10:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller has answered")
            return SimpleNamespace(broker_epoch=7, is_fenced=False, should_shut_down=True)

    with caplog.at_level("INFO"):
        asyncio.run(send_heartbeats(Controller(), 12))
    assert caplog.text.count("could not report that it is alive") == 1
    assert caplog.text.count("answers heartbeats again") == 1


def test_stale_epoch_is_logged_with_its_two_causes(caplog: pytest.LogCaptureFixture) -> None:
    class Controller(FakeController):
        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            self.requests.append(request)
            if self.asked == 4:
                raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, "replaced by a newer one")
            return SimpleNamespace(broker_epoch=7, is_fenced=False, should_shut_down=True)

    asyncio.run(send_heartbeats(Controller(), 5))
    assert "does not have this broker's registration (epoch 7) any more. Someone has unregistered the broker, or" in caplog.text


def test_shutdown_waits_until_the_controller_permits_it() -> None:
    class Controller(FakeController):
        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            self.requests.append(request)
            return SimpleNamespace(should_shut_down=len(self.requests) == 40)

    async def scenario() -> None:
        controller = Controller()
        membership = Membership(controller, Applied(), "cluster", 1, heartbeat_interval_ms=1)  # type: ignore[arg-type]
        membership.epoch = 7
        await membership.leave()
        await membership.leave()
        assert controller.asked == 40
        assert all(each.want_shut_down for each in controller.requests)

    asyncio.run(scenario())


def test_shutdown_without_permission_has_a_limit(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class Controller(FakeController):
        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            self.requests.append(request)
            return SimpleNamespace(should_shut_down=False)

    monkeypatch.setattr(membership_module, "SHUTDOWN_S_MAX", 0.2)
    controller = Controller()
    asyncio.run(member(controller, epoch=7).leave())
    assert controller.asked >= 2
    assert "did not permit the shutdown within 0.2 s: leaving anyway" in caplog.text


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (KafkaError(ErrorCode.NOT_CONTROLLER, "ask again later"), "ask again later"),
        (LogDirectoryFailed("/a", OSError(5, "broken")), "/a failed"),
    ],
)
def test_report_that_the_controller_cannot_write_is_only_logged(
    refusal: OttlaError, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    controller = FakeController(refusal)
    asyncio.run(member(controller, epoch=7).tell_lost(DIRECTORY))
    assert controller.asked == 1
    assert text in caplog.text


def test_directory_report_is_only_logged_when_the_metadata_log_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def tell() -> None:
        partitions: Any = SimpleNamespace(node_id=1)
        controller: Any = FakeController(LogDirectoryFailed("/a", OSError(5, "broken")))
        assignments = DirectoryAssignments(partitions, MetadataCache(), controller, lambda: 7)
        assignments._is_due = True
        assignments._unknown = lambda: [Assignment(DIRECTORY, 0, DIRECTORY)]  # type: ignore[method-assign]
        await assignments._tell()

    asyncio.run(tell())
    assert "could not report to the controller in which directories partitions are" in caplog.text


def test_an_id_that_stays_in_use_is_named() -> None:
    controller = FakeController(KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, "another broker"))
    membership = Membership(controller, Applied(), "cluster", 3, 1, registration_timeout_ms=20)  # type: ignore[arg-type]
    with pytest.raises(
        KafkaError, match=r"node\.id 3 is in use: another broker with it is alive .* Give this node an id of its own"
    ):
        asyncio.run(membership.join([], [DIRECTORY], [], rack=None, incarnation_id=DIRECTORY, last_epoch=-1))
    assert controller.asked > 1


@pytest.mark.parametrize(
    ("written_ms", "said"),
    [
        (1_000_000, None),
        (1_000_000 - CLOCKS_APART_MS, None),
        (1_000_300 + CLOCKS_APART_MS, None),
        (1_000_000 - 45_000, "this node's clock is 45 s ahead of the active controller's"),
        (1_000_300 + 7_200_000, "this node's clock is 7,200 s behind the active controller's"),
    ],
)
def test_clocks_far_apart_are_reported(written_ms: int, said: str | None) -> None:
    warning = clock_warning(1_000_000, written_ms, 1_000_300)
    assert warning is None if said is None else warning is not None and warning.startswith(said)


@pytest.mark.parametrize(("offset", "is_warned"), [(6, False), (7, True)])
def test_only_a_record_that_is_newer_than_the_registration_tells_the_controllers_time(
    caplog: pytest.LogCaptureFixture, offset: int, is_warned: bool
) -> None:
    loader = Applied()
    loader.published = SimpleNamespace(provenance=SimpleNamespace(offset=offset, timestamp_ms=0))  # type: ignore[attr-defined]
    clock = SimpleNamespace(now_ms=lambda: 1_000_000)
    membership = Membership(FakeController(), loader, "cluster", 3, 60_000, clock=clock)  # type: ignore[arg-type]

    async def scenario() -> None:
        await membership.join([], [DIRECTORY], [], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)

    asyncio.run(scenario())
    assert ("clock is 1,000 s ahead" in caplog.text) == is_warned


def test_silence_counts_from_the_last_heartbeat_that_was_answered() -> None:
    class Controller(FakeController):
        is_gone = False

        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            if self.is_gone:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller has answered")
            return SimpleNamespace(broker_epoch=7, is_fenced=False, should_shut_down=True)

    async def silence_of(interval_ms: int | None) -> list[int]:
        controller, loader, found = Controller(), Applied(), []
        membership = Membership(controller, loader, "cluster", 1, interval_ms)  # type: ignore[arg-type]  # stand-ins
        found.append(membership.silent_ms())
        await membership.join([], [DIRECTORY], [], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)
        found.append(membership.silent_ms())
        controller.is_gone = True
        await asyncio.sleep(0.05)
        found.append(membership.silent_ms())
        if membership._heartbeats is not None:
            membership._heartbeats.cancel()
        return found

    before, joined, silent = asyncio.run(silence_of(5))
    assert (before, joined < 40, silent >= 40) == (0, True, True)
    assert asyncio.run(silence_of(None)) == [0, 0, 0], "the only controller is in this process"
