"""This broker's membership in its cluster: registration, unfencing, state of its log directories, controlled shutdown.

BrokerRegistration and BrokerHeartbeat requests go through the controller's channel. With a controller on another node a task
sends heartbeats, because the controller fences a broker that it does not hear. None are sent if the only controller is in this
process: when the process ends, so does the controller. A broker that is unregistered while it runs registers again (`rejoin`),
and one that somebody else's heartbeat has fenced or shut down comes back (`come_back`); one whose id another process has taken
over stops (`broker/broker_role.py`). One event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from ottla.broker.background import lasting
from ottla.errors import BrokenInvariant, KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.features import SUPPORTED_FEATURES, UNSERVED_FEATURES
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)

if TYPE_CHECKING:
    from ottla.broker.channel import ControllerChannel
    from ottla.broker.runtime.metadata_loader import MetadataLoader
    from ottla.env.clock import Clock
    from ottla.metadata.image.cluster import BrokerRegistration, Endpoint
    from ottla.metadata.image.image import MetadataImage

logger = logging.getLogger("ottla.node")

SHUTDOWN_S_MAX = 30.0
"""How long a broker waits for the permission to leave. One that hangs is fenced before, and then nobody waits for it."""
_OUTAGE_LOGGED_S = 60.0
"""How often heartbeats that are not answered are logged while an outage lasts."""
_UNFENCING_MS = 50
"""How soon a broker that is still fenced sends its next heartbeat."""
_ANSWER_MS = 1000
"""How long a heartbeat waits for its answer at least."""
_REGISTERING_MS = 200
"""How soon a broker whose id is still in use tries to register again."""
CLOCKS_APART_MS = 5_000
"""Clocks that differ by more than this are reported. Synchronised clocks differ by milliseconds."""
NOT_REGISTERED = -1


class Membership:
    """The membership of broker `node_id`, which has applied the metadata as far as `loader` has published it.

    `heartbeat_interval_ms` is broker.heartbeat.interval.ms, or None if the only controller is in this process.
    """

    def __init__(
        self,
        channel: ControllerChannel,
        loader: MetadataLoader,
        cluster_id: str,
        node_id: int,
        heartbeat_interval_ms: int | None = None,
        registration_timeout_ms: int = 60_000,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock
        self._registration_timeout_ms = registration_timeout_ms
        self._interval_ms = heartbeat_interval_ms
        self._heartbeats: asyncio.Task[None] | None = None
        self._channel = channel
        self._loader = loader
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._offline_directories: list[Uuid] = []
        self.cordoned_directories: list[Uuid] = []
        self._has_left = False
        self._registration: BrokerRegistrationRequest | None = None
        """The request of `join`, until `register_again` sends it once more."""
        self._joined: BrokerRegistrationRequest | None = None
        """The request of `join`, for `rejoin`."""
        self._is_rejoining = False
        self._has_joined = False
        self._is_silent = False
        self._former_incarnation: Uuid | None = None
        self._complained_s: float | None = None
        self._heard_s: float | None = None
        """When the controller answered a heartbeat last, by the loop's clock."""
        self.epoch = NOT_REGISTERED

    def silent_ms(self) -> int:
        """How long no heartbeat has been answered; 0 if the only controller is in this process, which needs none."""
        if self._interval_ms is None or self._heard_s is None:
            return 0
        return int((asyncio.get_running_loop().time() - self._heard_s) * 1000)

    async def join(
        self,
        endpoints: Sequence[Endpoint],
        directories: Sequence[Uuid],
        cordoned: Sequence[Uuid],
        rack: str | None,
        incarnation_id: Uuid,
        last_epoch: int,
    ) -> None:
        """Register and get unfenced: from then on this broker may lead. `last_epoch` is from its last clean shutdown, or -1."""
        request = BrokerRegistrationRequest(
            broker_id=self._node_id,
            cluster_id=self._cluster_id,
            incarnation_id=incarnation_id,
            listeners=[
                Listener(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
                for each in endpoints
            ],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(self._features().items())
            ],
            rack=rack,
            log_dirs=sorted(directories),
            previous_broker_epoch=last_epoch,
        )
        self.cordoned_directories = list(cordoned)
        asked_ms = 0 if self._clock is None else self._clock.now_ms()
        registered = await self._register(request)
        self.epoch = registered.broker_epoch
        self._registration = self._joined = request
        await self._get_unfenced()
        self._has_joined = True
        if self._interval_ms is not None:
            self._check_clock(asked_ms)
            interval_s = self._interval_ms / 1000
            self._heartbeats = lasting("sending heartbeats", lambda: self._send_heartbeats(interval_s), interval_s)

    async def _get_unfenced(self) -> None:
        # The epoch is the offset of the registration. A broker that has not applied it stays fenced, and would ask again later.
        await self._loader.published_up_to(self.epoch + 1)
        rounds = 0
        while await self._is_fenced():
            rounds += 1
            # A heartbeat that reports a failed directory does not unfence; each directory is reported once.
            if self._interval_ms is None and rounds > len(self._offline_directories):
                if self._has_joined:
                    return  # somebody has fenced it again, or shut it down: the owner looks at the metadata once more
                raise BrokenInvariant(f"broker {self._node_id} has read all metadata and is still fenced")
            await asyncio.sleep(min(self._interval_ms or _UNFENCING_MS, _UNFENCING_MS) / 1000)

    def is_removed(self, image: MetadataImage) -> bool:
        """Whether `image`, which is newer than this broker's registration, does not have it: someone has unregistered it."""
        return self._is_in(image) and self._node_id not in image.cluster.brokers

    def successor(self, image: MetadataImage) -> BrokerRegistration | None:
        """The registration of another process with this broker's id, if there is one."""
        mine = image.cluster.brokers.get(self._node_id)
        if mine is None or self._joined is None or not self._is_in(image):
            return None
        return None if mine.incarnation_id in (self._joined.incarnation_id, self._former_incarnation) else mine

    def _is_in(self, image: MetadataImage) -> bool:
        return self.epoch != NOT_REGISTERED and image.provenance.offset >= self.epoch

    async def rejoin(self) -> None:
        """Register again after someone has unregistered this broker while it runs.

        Apache Kafka's broker goes on unregistered: it sends heartbeats that are refused, leads nothing, and is in no ISR until
        somebody restarts it. A restart would register it; so does this.
        """
        request = self._joined
        if request is None or self._is_rejoining or self._has_left:
            return
        logger.warning(
            "broker %d was unregistered while it runs, by `ottla cluster unregister` or an admin client: it leads no partition "
            "and registers again. To remove a broker for good, stop it first",
            self._node_id,
        )
        self._is_rejoining = True
        try:
            again = copy(request)
            again.previous_broker_epoch = self.epoch
            await self._rejoin(again)
        finally:
            self._is_rejoining = False

    def is_shut_out(self, image: MetadataImage) -> bool:
        """Whether `image` has this broker shut down, although it is not leaving; or fenced, where no heartbeat would end that.

        Heartbeats are believed by node id and epoch, so another process may have sent one. A broker whose controller is on
        another node is unfenced by its own next heartbeat.
        """
        mine = image.cluster.brokers.get(self._node_id)
        if mine is None or mine.epoch != self.epoch or not self._has_joined or self._has_left or self._is_rejoining:
            return False
        return mine.in_controlled_shutdown or (mine.fenced and self._interval_ms is None)

    async def come_back(self, image: MetadataImage, incarnation_id: Uuid) -> None:
        """Be unfenced again; after a shutdown, register again as `incarnation_id`, as a restart would."""
        if self._is_rejoining or self._has_left or self._joined is None:
            return
        self._is_rejoining = self._is_silent = True
        try:
            is_shut_down = image.cluster.brokers[self._node_id].in_controlled_shutdown
            self._complain("shut down" if is_shut_down else "fenced")
            again: BrokerRegistrationRequest | None = None
            if is_shut_down:
                await self._end_shutdown()
                again = copy(self._joined)
                again.previous_broker_epoch = self.epoch
                self._former_incarnation, again.incarnation_id = again.incarnation_id, incarnation_id
                self._joined = again
            await self._rejoin(again)
        finally:
            self._is_rejoining = self._is_silent = False

    def _complain(self, what: str) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._complained_s is None or now_s - self._complained_s >= _OUTAGE_LOGGED_S:
            self._complained_s = now_s
            logger.warning(
                "broker %d was %s by a heartbeat that it has not sent: it comes back. If no other process has its node.id, a "
                "stranger reaches the controllers' port: close it",
                self._node_id, what,
            )  # fmt: skip

    async def _end_shutdown(self) -> None:
        """Let the controller end the shutdown that it believes in: it then takes another registration at once."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + SHUTDOWN_S_MAX
        while loop.time() < deadline_s and not self._has_left:
            try:
                if (await self._heartbeat(want_shut_down=True)).should_shut_down:
                    return
            except (KafkaError, LogDirectoryFailed) as refused:
                logger.warning("the controller did not end the shutdown of broker %d: %s", self._node_id, refused)
                return
            await asyncio.sleep(min(self._interval_ms or _UNFENCING_MS, _UNFENCING_MS) / 1000)

    async def _rejoin(self, request: BrokerRegistrationRequest | None) -> None:
        """Register with `request`, if there is one, and get unfenced; try it until it succeeds."""
        pause_s = (self._interval_ms or _REGISTERING_MS) / 1000
        while not self._has_left:
            try:
                if request is not None:
                    self.epoch = (await self._register(request)).broker_epoch
                await self._get_unfenced()
            except (KafkaError, LogDirectoryFailed) as refused:
                logger.warning("broker %d could not register again, and tries it in %g s: %s", self._node_id, pause_s, refused)
                await asyncio.sleep(pause_s)
                continue
            logger.info("broker %d is registered again, with epoch %d", self._node_id, self.epoch)
            return

    def _check_clock(self, asked_ms: int) -> None:
        """Compare this node's clock with the controller's, which has written our registration since `asked_ms`."""
        if self._clock is None:
            return
        newest = self._loader.published.provenance
        if newest.offset < self.epoch:  # which is the offset of the registration
            return
        warning = clock_warning(asked_ms, newest.timestamp_ms, self._clock.now_ms())
        if warning is not None:
            logger.warning("%s", warning)

    async def _register(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        """The controller's response. While the session of this broker's killed process lasts, it asks again."""
        loop = asyncio.get_running_loop()
        deadline_s, is_logged = loop.time() + self._registration_timeout_ms / 1000, False
        while True:
            try:
                response: BrokerRegistrationResponse = await self._channel.call(request, self._registration_timeout_ms)
                return response
            except KafkaError as refused:
                is_duplicate = refused.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
                if self._interval_ms is None or not is_duplicate:
                    raise
                if loop.time() > deadline_s:
                    raise KafkaError(refused.code, _taken(self._node_id, self._registration_timeout_ms)) from None
                if not is_logged:
                    logger.warning("waiting to register: node.id %d is in use by another broker", self._node_id)
                is_logged = True
            await asyncio.sleep(min(self._interval_ms, _REGISTERING_MS) / 1000)

    def _features(self) -> dict[str, tuple[int, int]]:
        """The features in the registration. Apache's controller refuses a broker that does not list every finalised one."""
        unserved = {} if self._interval_ms is None else {name: (0, level) for name, level in UNSERVED_FEATURES.items()}
        return {**SUPPORTED_FEATURES, **unserved}

    async def _is_fenced(self) -> bool:
        try:
            return (await self._heartbeat()).is_fenced
        except KafkaError as refused:
            if self._interval_ms is None or refused.code != ErrorCode.REQUEST_TIMED_OUT:
                raise
            logger.info("still fenced: %s", refused)
            return True

    async def _send_heartbeats(self, interval_s: float) -> None:
        """Send one each interval. An outage of the controllers is logged when it begins, once a minute, and when it ends."""
        loop = asyncio.get_running_loop()
        logged_s: float | None = None
        while True:
            await asyncio.sleep(interval_s)
            if self._is_silent:
                continue  # a heartbeat of the old registration would prolong its session
            refused = await self._report()
            if refused is None:
                if logged_s is not None:
                    logger.info("the controller answers heartbeats again")
                logged_s = None
            elif logged_s is None or loop.time() - logged_s >= _OUTAGE_LOGGED_S:
                logged_s = loop.time()
                logger.warning("could not report that it is alive to the controller: %s", _why(refused, self.epoch))

    async def tell_lost(self, directory_id: Uuid) -> None:
        """Report that a directory has failed: other brokers take over the partitions in it, if there are any."""
        self._offline_directories.append(directory_id)
        await self._tell("the failed directory")

    async def tell_cordoned(self, directory_ids: Sequence[Uuid]) -> None:
        """Report the cordoned directories: exactly these get no new partitions from now on."""
        self.cordoned_directories = list(directory_ids)
        await self._tell("the cordoned directories")

    async def register_again(self) -> None:
        """Give the controller the log directories: metadata.version was too low to keep them when this broker registered.

        The incarnation is the same, so the registration keeps its epoch. Without the directories the controller would ignore
        that one has failed, and this broker would go on to lead the partitions in it.
        """
        request, self._registration = self._registration, None
        if request is None or self._has_left:
            return  # under way, or not needed
        try:
            await self._channel.call(request)
        except (KafkaError, LogDirectoryFailed) as refused:
            logger.warning("could not give the controller the log directories, and try again later: %s", refused)
            self._registration = request
            return
        await self._tell("failed and cordoned directories")  # the registration has neither

    async def _tell(self, what: str) -> None:
        refused = await self._report()
        if refused is not None:
            logger.warning("could not report %s to the controller: %s", what, refused)

    async def _report(self) -> KafkaError | LogDirectoryFailed | None:
        """Send a heartbeat; returns why the controller did not take it."""
        if self.epoch == NOT_REGISTERED:
            return None  # the first heartbeat reports it
        try:
            await self._heartbeat()
        except (KafkaError, LogDirectoryFailed) as refused:  # the metadata log's own failure is reported elsewhere
            return refused
        return None

    async def leave(self) -> None:
        """Hand over the partitions it leads and get fenced: the metadata then says that this broker has shut down.

        The controller permits the shutdown when all other brokers know the new leaders, which it hears with their heartbeats.
        """
        if self.epoch == NOT_REGISTERED or self._has_left:
            return
        self._has_left = True
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.wait([self._heartbeats])
        loop = asyncio.get_running_loop()
        deadline_s, rounds = loop.time() + SHUTDOWN_S_MAX, 0
        while loop.time() < deadline_s:
            try:
                if (await self._heartbeat(want_shut_down=True)).should_shut_down:
                    return
            except KafkaError as refused:
                logger.warning("leaving the cluster without the controller's permission: %s", refused)
                return
            rounds += 1
            if rounds > 1:  # the second answer permits the shutdown if there is no other broker
                await asyncio.sleep(min(self._interval_ms or _UNFENCING_MS, _UNFENCING_MS) / 1000)
        logger.warning("the controller did not permit the shutdown within %g s: leaving anyway", SHUTDOWN_S_MAX)

    async def _heartbeat(self, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=self._node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._loader.published_offset - 1,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline_directories),
            cordoned_log_dirs=list(self.cordoned_directories),
        )
        # A heartbeat that was not answered in time is stale: the next one goes to the controller that is active then.
        response: BrokerHeartbeatResponse = await self._channel.call(
            request, None if self._interval_ms is None else max(self._interval_ms, _ANSWER_MS)
        )
        self._heard_s = asyncio.get_running_loop().time()
        return response


def _why(refused: KafkaError | LogDirectoryFailed, epoch: int) -> str:
    """The reason of a refused heartbeat. Its response has a code only, which has two causes."""
    if isinstance(refused, KafkaError) and refused.code == ErrorCode.STALE_BROKER_EPOCH:
        return (
            f"the controller does not have this broker's registration (epoch {epoch}) any more. Someone has unregistered the "
            "broker, or another process has registered with its id: the metadata tells which"
        )
    return str(refused)


def _taken(node_id: int, waited_ms: int) -> str:
    return (
        f"node.id {node_id} is in use: another broker with it is alive and has been for {waited_ms // 1000} s. Give this node "
        "an id of its own, or stop the other one"
    )


def clock_warning(asked_ms: int, written_ms: int, answered_ms: int) -> str | None:
    """What to say of this node's clock, if the controller's shows another time.

    The controller wrote a record at `written_ms` by its clock, after `asked_ms` and before `answered_ms` by ours.
    """
    if written_ms > answered_ms + CLOCKS_APART_MS:
        apart_ms, how = written_ms - answered_ms, "behind"
    elif written_ms < asked_ms - CLOCKS_APART_MS:
        apart_ms, how = asked_ms - written_ms, "ahead of"
    else:
        return None
    return (
        f"this node's clock is {apart_ms / 1000:,.0f} s {how} the active controller's: set both by NTP. Retention, transaction "
        "timeouts and the timestamps of records depend on them"
    )
