"""The security of listeners and of links between nodes: from the settings of a listener to what `env` and `link` take.

A node that connects to a listener uses the settings of that listener, as in Kafka: its key store is the client certificate, and
its JAAS text names the user to log in as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.config.broker_security import ListenerSecurity
from ottla.config.jaas import parse_jaas
from ottla.config.values import InvalidConfig
from ottla.env.tls import TlsOptions

if TYPE_CHECKING:
    from ottla.link.security import LinkSecurity, SaslOptions


def tls_options(security: ListenerSecurity, *, is_client: bool = False) -> TlsOptions | None:
    """TLS for the listener itself, or with `is_client` for a connection to it; None without TLS."""
    tls = security.tls
    if tls is None:
        return None
    return TlsOptions(
        client_auth=None if is_client else tls.client_auth,
        ca=tls.ca,
        certificate=tls.certificate,
        key=tls.key,
        key_password=tls.key_password,
        ca_password=tls.ca_password,
        certificate_password=tls.certificate_password,
        check_hostname=tls.check_hostname,
        ciphers=tls.ciphers,
        versions=tls.versions,
    )


def link_security(security: ListenerSecurity) -> LinkSecurity:
    """What a connection to the listener needs. Raises `InvalidConfig` if the JAAS text names no user to log in as."""
    from ottla.link.security import LinkSecurity  # late: a quorum of one needs no links

    tls = tls_options(security, is_client=True)
    return LinkSecurity(tls, None if security.own_mechanism is None else _login(security, security.own_mechanism))


def _login(security: ListenerSecurity, mechanism: str) -> SaslOptions:
    from ottla.link.security import SaslOptions

    setting = f"listener.name.{security.name.lower()}.{mechanism.lower()}.sasl.jaas.config"
    options = parse_jaas(security.jaas[mechanism], setting).options
    username, password = options.get("username"), options.get("password")
    if not username or not password:
        raise InvalidConfig(
            "sasl.jaas.config",
            f"{setting} has no username or no password, with which nodes log in at each other: add them",
        )
    return SaslOptions(mechanism, username, password, is_delegation_token=options.get("tokenauth", "").lower() == "true")
