"""Registers a controller that is not the active one: its listeners and supported features, once per start.

The active controller registers itself when it becomes active (`activation.py`). The others send ControllerRegistration through
the controller's channel, until their registration is committed. A feature level is finalised only if all controllers support
it, so none of them may be missing in the metadata. One event loop.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.errors import KafkaError
from ottla.metadata.features import CONTROLLER_REGISTRATION_FROM, SUPPORTED_FEATURES
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, Feature, Listener

if TYPE_CHECKING:
    from ottla.broker.channel import ControllerChannel
    from ottla.broker.runtime.controller import ControllerRuntime
    from ottla.metadata.image.image import MetadataImage
    from ottla.wire.messages.controller_registration import ControllerRegistrationRequest

logger = logging.getLogger("ottla.controller")

RETRY_S: Final = 1.0


class ControllerRegistrar:
    """Registers `controller` through `channel`."""

    def __init__(self, controller: ControllerRuntime, channel: ControllerChannel) -> None:
        self._controller = controller
        self._channel = channel
        self._is_registered = False
        self._task: asyncio.Task[None] | None = None

    def metadata_changed(self, image: MetadataImage) -> None:
        """`image` is published: register, unless it has the registration."""
        known = image.cluster.controllers.get(self._controller.node_id)
        if known is not None and known.incarnation_id == self._controller.incarnation_id:
            self._is_registered = True
        is_possible = image.metadata_version >= CONTROLLER_REGISTRATION_FROM and not self._controller.is_active
        if is_possible and not self._is_registered and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._register())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _register(self) -> None:
        request = self._request()
        while not self._is_registered:
            try:
                await self._channel.call(request)
                self._is_registered = True
                logger.info("controller %d is registered", self._controller.node_id)
            except Exception as refused:
                is_bug = not isinstance(refused, KafkaError)
                text = "controller %d is not registered yet: %s"
                logger.warning(text, self._controller.node_id, refused, exc_info=is_bug)
                await asyncio.sleep(RETRY_S)
        self._task = None

    def _request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._controller.node_id,
            incarnation_id=self._controller.incarnation_id,
            listeners=[
                Listener(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
                for each in self._controller.endpoints
            ],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED_FEATURES.items())
            ],
        )
