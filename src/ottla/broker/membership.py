"""This broker as a member of its cluster: registering, being let in, telling of its directories, leaving in good order.

The controller is in this process, so what brokers elsewhere send as BrokerRegistration and BrokerHeartbeat requests is handed
to it directly; the decisions and the records are the same. A session that is kept by requests need not be kept here: when this
process is gone, so is the controller.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.errors import BrokenInvariant, KafkaError, LogDirectoryFailed
from ottla.ids import Uuid
from ottla.metadata.controller.broker_registration import register_broker
from ottla.metadata.controller.brokers import broker_heartbeat
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener

if TYPE_CHECKING:
    from ottla.broker.hosts.controller import ControllerHost
    from ottla.metadata.image.cluster import Endpoint

logger = logging.getLogger("ottla.node")

_SHUTDOWN_ROUNDS_MAX = 10
_NOT_REGISTERED = -1


class Membership:
    """The membership of broker `node_id`."""

    def __init__(self, controller: ControllerHost, cluster_id: str, node_id: int) -> None:
        self._controller = controller
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._offline_directories: list[Uuid] = []
        self.cordoned_directories: list[Uuid] = []
        self.epoch = _NOT_REGISTERED

    async def join(
        self,
        endpoints: Sequence[Endpoint],
        directories: Sequence[Uuid],
        cordoned: Sequence[Uuid],
        rack: str | None,
        incarnation_id: Uuid,
        last_epoch: int,
    ) -> None:
        """Register, and be let in: from then on this broker may lead. `last_epoch` is that of its last clean shutdown."""
        features = self._controller.state.settings.supported_features
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
                for name, (low, high) in sorted(features.items())
            ],
            rack=rack,
            log_dirs=sorted(directories),
            previous_broker_epoch=last_epoch,
        )
        self.cordoned_directories = list(cordoned)
        registered = await self._controller.write(lambda state, now_ms: register_broker(state, request, now_ms))
        self.epoch = registered.broker_epoch
        heard = await self._heartbeat()
        if heard.is_fenced:
            raise BrokenInvariant(f"broker {self._node_id} has read everything there is, and is still not let in")

    async def tell_lost(self, directory_id: Uuid) -> None:
        """A directory has failed: others lead what was in it, if there are others."""
        self._offline_directories.append(directory_id)
        await self._tell("the failed directory")

    async def tell_cordoned(self, directory_ids: Sequence[Uuid]) -> None:
        """From now on these directories, and no others, are to get no new partitions."""
        self.cordoned_directories = list(directory_ids)
        await self._tell("the cordoned directories")

    async def _tell(self, what: str) -> None:
        if self.epoch == _NOT_REGISTERED:
            return  # it is told with the first heartbeat
        try:
            await self._heartbeat()
        except (KafkaError, LogDirectoryFailed) as refused:  # that the metadata log has failed is told elsewhere
            logger.warning("the controller was not told of %s: %s", what, refused)

    async def leave(self) -> None:
        """Hand over what is led, and be fenced: whoever looks knows that this broker has gone on purpose."""
        if self.epoch == _NOT_REGISTERED:
            return
        for _ in range(_SHUTDOWN_ROUNDS_MAX):
            try:
                if (await self._heartbeat(want_shut_down=True)).should_shut_down:
                    return
            except KafkaError as refused:
                logger.warning("leaving the cluster without its controller's word: %s", refused)
                return
        logger.warning("the controller has not let this broker go in %d rounds: leaving all the same", _SHUTDOWN_ROUNDS_MAX)

    async def _heartbeat(self, want_shut_down: bool = False) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=self._node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._controller.published.provenance.offset,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline_directories),
            cordoned_log_dirs=list(self.cordoned_directories),
        )
        return await self._controller.write(lambda state, now_ms: broker_heartbeat(state, request, now_ms))
