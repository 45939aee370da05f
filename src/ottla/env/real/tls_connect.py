"""Connects with TLS: the context, the plain connection, the handshake, and the errors of each."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace

from ottla.env.net import StreamOwner
from ottla.env.real.stream import RealStream
from ottla.env.real.tls import refused_suite, tls_context
from ottla.env.real.tls_errors import certificate_names, explain, explain_name, is_wrong_name
from ottla.env.real.tls_stream import TlsStream
from ottla.env.tls import TlsFailed, TlsOptions

NAMES_TIMEOUT_S = 2.0
"""The limit for the second handshake that reads the names of a certificate, for an error text."""

Connect = Callable[[], Awaitable[RealStream]]


async def connect_tls(connect: Connect, host: str, port: int, owner: StreamOwner, options: TlsOptions) -> TlsStream:
    """An encrypted stream over what `connect` returns. Raises `TlsFailed`, or another `OSError` if the connection breaks."""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    context = await asyncio.get_running_loop().run_in_executor(None, tls_context, options)
    try:
        stream = await _shake_hands(connect, owner, context, options.server_name or host, address)
    except ssl.SSLError as error:
        if not is_wrong_name(error):
            raise explain(address, error) from None
        names = await _names(connect, owner, options, host, address)
        raise explain_name(address, options.server_name or host, names) from None
    cipher = stream.tls.cipher()
    refusal = refused_suite(options, cipher[0]) if cipher is not None else None
    if refusal is not None:
        stream.shut()
        raise TlsFailed(f"{address} cannot be used: {refusal}")
    return stream


async def _shake_hands(
    connect: Connect, owner: StreamOwner, context: ssl.SSLContext, server_name: str, address: str
) -> TlsStream:
    inner = await connect()
    try:
        stream = TlsStream.outbound(inner, owner, context, server_name, address)
        await stream.handshake()
    except ssl.SSLError:
        raise
    except ValueError as error:
        inner.shut()
        raise TlsFailed(f"TLS with {address} is impossible: {server_name} is no server name ({error})") from None
    except ConnectionError as error:
        text = (
            f"{address} closed the connection during the TLS handshake: check that the port is an SSL or SASL_SSL listener "
            "(others close at once), and that it accepts our TLS versions; or the node is just stopping"
        )
        raise type(error)(text) from None
    return stream


async def _names(connect: Connect, owner: StreamOwner, options: TlsOptions, host: str, address: str) -> list[str]:
    """The hosts that the peer's certificate is for, read in a second handshake without the check of the name.

    OpenSSL does not show a certificate that it has refused. The issuer is checked as before, and no client certificate is sent.
    """
    probe = replace(options, check_hostname=False, certificate=None, key=None)
    try:
        async with asyncio.timeout(NAMES_TIMEOUT_S):
            context = await asyncio.get_running_loop().run_in_executor(None, tls_context, probe)
            stream = await _shake_hands(connect, owner, context, options.server_name or host, address)
    except (OSError, TimeoutError):
        return []
    stream.shut()
    return certificate_names(stream.tls.getpeercert() or {})
