"""Key stores and trust stores of this node's TLS listeners while it runs: what they show, and what may take their place.

The rules are Kafka's. A store can be replaced by settings of this broker with the listener's prefix. Any accepted change of
this broker's settings reads the files of all listeners again. A new certificate has the subject and the alternative names of
the old one, unless ssl.allow.dn.changes or ssl.allow.san.changes says otherwise in server.properties. On the listener for
brokers it must be one that the trust store accepts: this node shows it to others, who have the same trust store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.broker.security import tls_options
from ottla.config.broker_security import ListenerSecurity, ListenerSettings, with_stores_of
from ottla.config.values import InvalidConfig
from ottla.env.tls import ShownCertificate, TlsFailed

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env import Network


class TlsStores:
    """The stores of the TLS listeners that a node has opened."""

    def __init__(self, network: Network, static: Mapping[str, str], config: BrokerConfig) -> None:
        """Raises `TlsFailed` if a store cannot be read. It reads files."""
        self._network = network
        self._static = static
        served = [each.name for each in config.listeners]
        self._first: dict[str, ListenerSecurity] = {
            name: security for name, security in config.listener_security.items() if security.uses_tls and name in served
        }
        self._shown = {name: self._read(security) for name, security in self._first.items()}

    def check(self, config: BrokerConfig) -> None:
        """Raise `InvalidConfig` if the stores that `config` names must not take the place of those in use."""
        self._checked(config)

    def renew(self, config: BrokerConfig) -> None:
        """Note that the stores of `config` are in use from now on. Raises `InvalidConfig`, like `check`."""
        self._shown = self._checked(config)

    def _checked(self, config: BrokerConfig) -> dict[str, ShownCertificate]:
        return {
            name: self._check(first, config.listener_security[name], name == config.inter_broker_listener_name)
            for name, first in self._first.items()
        }

    def _check(self, first: ListenerSecurity, wanted: ListenerSecurity, is_for_brokers: bool) -> ShownCertificate:
        name = first.name
        security = with_stores_of(first, wanted)
        assert first.tls is not None
        assert security.tls is not None
        if (first.tls.ca is None) != (security.tls.ca is None):
            what = "has no trust store" if first.tls.ca is None else "has a trust store"
            raise InvalidConfig(
                "ssl.truststore.location",
                f"listener {name} {what} since its start, and that cannot change while the node runs: restart it",
            )
        try:
            shown, before = self._read(security, is_for_brokers), self._shown[name]
        except TlsFailed as failed:
            raise InvalidConfig(failed.setting or "ssl.keystore.location", f"listener {name}: {failed}") from None
        allowed = ListenerSettings(self._static, name)
        if shown.subject != before.subject and not allowed.value("ssl.allow.dn.changes"):
            raise InvalidConfig(
                "ssl.keystore.location",
                f"listener {name}: the subject of the new certificate differs from that of the one in use. If it is meant to, "
                "set ssl.allow.dn.changes=true in server.properties and restart",
            )
        if shown.names != before.names and not allowed.value("ssl.allow.san.changes"):
            raise InvalidConfig(
                "ssl.keystore.location",
                f"listener {name}: the new certificate is for {', '.join(shown.names) or 'no names'}, and the one in use for "
                f"{', '.join(before.names) or 'no names'}. If it is meant to, set ssl.allow.san.changes=true in "
                "server.properties and restart",
            )
        return shown

    def _read(self, security: ListenerSecurity, must_be_trusted: bool = False) -> ShownCertificate:
        options = tls_options(security)
        assert options is not None
        return self._network.shown_certificate(options, must_be_trusted=must_be_trusted)
