"""Opens links from this node to other nodes of its cluster, with the security of the listener that they lead to.

All links between nodes are made here: to the active controller, to other voters, to the leaders of replicated partitions and to
other coordinators. The settings of the listener are looked up for every link, and its files are read again, so that a
renewed certificate needs no restart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from ottla.broker.security import link_security
from ottla.config.broker_security import UNSECURED, ListenerSecurity
from ottla.config.values import InvalidConfig
from ottla.env.tls import TlsFailed

if TYPE_CHECKING:
    from ottla.broker.settings import BrokerSettings
    from ottla.env import Network, Randomness, World
    from ottla.link import Link, LinkOptions


class NodeLinks:
    """Links to one listener of other nodes."""

    def __init__(
        self,
        network: Network,
        randomness: Randomness | None = None,
        security: Callable[[], ListenerSecurity] = lambda: UNSECURED,
    ) -> None:
        """`security` returns that of the listener; `randomness` is for logins."""
        self._network = network
        self._randomness = randomness
        self._security = security

    @classmethod
    def to_controllers(cls, world: World, settings: BrokerSettings) -> Self:
        return cls(world.network, world.randomness, lambda: settings.current.controllers_security)

    @classmethod
    def to_brokers(cls, world: World, settings: BrokerSettings) -> Self:
        return cls(world.network, world.randomness, lambda: settings.current.brokers_security)

    def check(self) -> None:
        """Raise `InvalidConfig` if no link can be made with the settings: a missing file, no user to log in as."""
        security = self._security()
        tls = link_security(security).tls
        if tls is None:
            return
        try:
            self._network.check_tls(tls)
        except TlsFailed as failed:
            setting = failed.setting or "ssl.truststore.location"
            raise InvalidConfig(setting, f"nodes cannot connect to listener {security.name}: {failed}") from None

    async def connect(self, host: str, port: int, options: LinkOptions) -> Link:
        """As `Link.connect`, which see for its errors."""
        from ottla.link import AuthenticationFailed, Link  # late: a quorum of one needs no links

        security = self._security()
        if security is not UNSECURED:
            try:
                options = replace(options, security=link_security(security))
            except InvalidConfig as wrong:
                raise AuthenticationFailed(f"{host}:{port}", f"{host}:{port} cannot be connected to: {wrong}") from None
        return await Link.connect(self._network, host, port, options, self._randomness)
