"""The options of a client's connections, from its settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.client.world import ClientWorld
from ottla.config.client.security import SecuritySettings
from ottla.config.client.settings import ClientSettings
from ottla.env.net import SocketOptions
from ottla.env.tls import TlsFailed, TlsOptions
from ottla.errors import ConfigError
from ottla.link import LinkOptions
from ottla.link.security import LinkSecurity, SaslOptions, TokenProvider

if TYPE_CHECKING:
    from ottla.link.tokens import SharedToken

IN_FLIGHT_MAX = 1_000
"""The machines bound their own requests in flight; the connection must not queue what they want sent."""


def link_options(settings: ClientSettings, world: ClientWorld, default_client_id: str = "ottla") -> LinkOptions:
    """The options for every connection of one client. `default_client_id` is for a client that was given none.

    The connections share one bearer token; those of other clients too, if settings say where it comes from. Must be called on
    the client's event loop.
    """
    security = _link_security(settings.security, world)
    provider = settings.security.token
    if security.sasl is not None and provider is not None:
        from ottla.link.tokens import RefreshTimes, TokenCache  # late: it needs json and hashlib

        times = RefreshTimes(*settings.security.token_refresh)
        cache = TokenCache(provider, times, world.clock.now_ms, world.randomness.below)
        security = replace(security, sasl=replace(security.sasl, token=cache))
    return LinkOptions(
        client_id=settings.client_id or default_client_id,
        connect_timeout_ms=settings.socket_connection_setup_timeout_ms,
        request_timeout_ms=settings.request_timeout_ms,
        in_flight_max=IN_FLIGHT_MAX,
        socket=SocketOptions(settings.send_buffer_bytes, settings.receive_buffer_bytes),
        security=security,
    )


def check_security(settings: ClientSettings, world: ClientWorld) -> None:
    """Raise `ConfigError` if the files and texts of TLS, or what fetches tokens, cannot be used: for a client's constructor."""
    tls = _link_security(settings.security, world).tls
    if tls is None:
        return
    try:
        world.network.check_tls(tls)
    except TlsFailed as failed:
        raise ConfigError(str(failed), setting=failed.setting) from None


def _link_security(security: SecuritySettings, world: ClientWorld) -> LinkSecurity:
    tls = sasl = None
    if security.uses_tls:
        tls = TlsOptions(
            ca=security.ca,
            certificate=security.certificate,
            key=security.key,
            key_password=security.key_password,
            ca_password=security.ca_password,
            certificate_password=security.certificate_password,
            check_hostname=security.check_hostname,
            ciphers=security.ciphers,
            versions=security.tls_versions,
        )
    if security.uses_sasl:
        token: TokenProvider | SharedToken | None = security.token
        if security.token_settings is not None:
            from ottla.client.tokens import shared_token  # late: few clients log in with tokens

            token = shared_token(security, world)
        sasl = SaslOptions(
            security.mechanism or "",
            security.username or "",
            security.password or "",
            token,
            security.is_delegation_token,
        )
    return LinkSecurity(tls, sasl)
