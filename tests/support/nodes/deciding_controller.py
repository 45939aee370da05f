"""A controller that decides on a `ControllerCluster`, for tests of channels and of the handlers on a controller's listener."""

import asyncio
from typing import Any

from tests.support.nodes.controller_cluster import ControllerCluster
from tests.support.nodes.images import context_of

from ottla.broker.requests.apis import load_handler
from ottla.broker.requests.context import future_of
from ottla.errors import KafkaError
from ottla.metadata.controller.apis import decision_of
from ottla.metadata.controller.decision import Asker
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message


class DecidingController:
    """Decides, and commits at once. `refusal` is raised instead, if it is set."""

    def __init__(self, cluster: ControllerCluster | None = None) -> None:
        self.cluster = cluster or ControllerCluster()
        self.askers: list[Asker] = []
        self.refusal: KafkaError | None = None

    @property
    def versions(self) -> list[int]:
        return [asker.version for asker in self.askers]

    async def call(self, request: Message, asker: Asker) -> Any:
        self.askers.append(asker)
        if self.refusal is not None:
            raise self.refusal
        return self.cluster.apply(decision_of(request.KEY)(self.cluster.state, request, self.cluster.now_ms, asker))

    async def caught_up(self) -> None:
        """As a loader: everything is published at once."""

    def ask(self, request: Message, version: int | None = None) -> Any:
        """The response of the request's handler on a controller's listener, refusals included."""
        return asyncio.run(self._ask(request, APIS[request.KEY].newest if version is None else version))

    async def _ask(self, request: Message, version: int) -> Any:
        module = load_handler(request.KEY, True)
        assert module is not None
        context = context_of(self.cluster.state.image, request.KEY, version, on_controller=True, controller=self, loader=self)
        try:
            return await future_of(module.handle(context, request))
        except KafkaError as error:
            return module.refuse(context, request, error)


def services_of(controller: DecidingController) -> Any:
    """The services of a controller's node, as far as its channel needs them."""
    image = controller.cluster.state.image
    return context_of(image, ApiKey.ENVELOPE, 0, on_controller=True, controller=controller, loader=controller).services
