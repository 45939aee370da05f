"""Key sets (JWKS) from files and over HTTPS (`env/key_sets.py` is the contract). Redirects are not followed."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import unquote, urlsplit

from ottla.env.key_sets import KeySetAddress, KeySetFailed
from ottla.env.real.tls import tls_context
from ottla.env.tls import TlsFailed

DOCUMENT_MAX_BYTES = 4_000_000
_SETTING = "sasl.oauthbearer.jwks.endpoint.url"


class RealKeySets:
    """`KeySets` from files and over HTTPS."""

    def read(self, address: KeySetAddress) -> bytes:
        document = _file(address) if address.is_file else _page(address)
        if len(document) > DOCUMENT_MAX_BYTES:
            raise KeySetFailed(f"the key set {address.url} has more than {DOCUMENT_MAX_BYTES} bytes: is it the right one?")
        return document


def _file(address: KeySetAddress) -> bytes:
    path = unquote(urlsplit(address.url).path)
    try:
        with open(path, "rb") as file:
            return file.read(DOCUMENT_MAX_BYTES + 1)
    except OSError as error:
        raise KeySetFailed(f"the key set {path} ({_SETTING}) cannot be read: {error.strerror or error}") from None


def _page(address: KeySetAddress) -> bytes:
    where = f"the key set {address.url} ({_SETTING})"
    try:
        opener = urllib.request.build_opener(NoRedirect(), urllib.request.HTTPSHandler(context=tls_context(address.tls)))
        request = urllib.request.Request(address.url, headers={"Accept": "application/json", "User-Agent": "ottla"})
        timeout_s = max(address.connect_timeout_ms, address.read_timeout_ms) / 1000
        with opener.open(request, timeout=timeout_s) as response:
            document: bytes = response.read(DOCUMENT_MAX_BYTES + 1)
            return document
    except urllib.error.HTTPError as error:
        with error:
            raise KeySetFailed(f"{where} cannot be read: the server answered {error.code} {error.reason}") from None
    except TlsFailed as error:
        raise KeySetFailed(f"{where} cannot be read: {error}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise KeySetFailed(
                f"{where} cannot be read: its certificate is not trusted ({cause.verify_message}); name its authority by "
                "ssl.truststore.location"
            ) from None
        raise KeySetFailed(f"{where} cannot be read: {cause}. Check the URL and the network") from None


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect an error."""

    def redirect_request(self, *_: Any) -> None:
        return None
