"""Requests to a schema registry over HTTP (`env/schema_registry.py` is the contract). Redirects are not followed."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request

from ottla.env.real.key_sets import NoRedirect
from ottla.env.real.tls import tls_context
from ottla.env.schema_registry import RegistryAddress, RegistryFailed
from ottla.env.tls import TlsFailed, TlsOptions

ANSWER_MAX_BYTES = 4_000_000
ACCEPT = "application/vnd.schemaregistry.v1+json"
_NO_LOGIN = (401, 403)


class RealSchemaRegistries:
    """`SchemaRegistries` over HTTP."""

    def get(self, address: RegistryAddress, path: str) -> bytes | None:
        failures = []
        for url in address.urls:
            try:
                return _page(address, url.rstrip("/") + path)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == 404 and _is_registrys(error.read(ANSWER_MAX_BYTES)):
                        return None
                    hint = ": set confluent.basic.auth.user.info" if error.code in _NO_LOGIN else ""
                    failures.append(f"{url} answers {error.code} {error.reason}{hint}")
            except (OSError, http.client.HTTPException, ValueError, TlsFailed) as error:
                cause = error.reason if isinstance(error, urllib.error.URLError) else error
                failures.append(f"{url}: {cause}")
        raise RegistryFailed(
            f"the schema registry does not answer ({'; '.join(failures)}). Start it, or correct confluent.schema.registry.url"
        )


def _page(address: RegistryAddress, url: str) -> bytes:
    headers = {"Accept": ACCEPT, "User-Agent": "ottla"}
    if address.user_info is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(address.user_info.encode()).decode()
    handlers: list[urllib.request.BaseHandler] = [NoRedirect(), urllib.request.ProxyHandler({})]
    if url.startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=tls_context(TlsOptions())))
    opener = urllib.request.build_opener(*handlers)
    with opener.open(urllib.request.Request(url, headers=headers), timeout=address.timeout_s) as response:
        page: bytes = response.read(ANSWER_MAX_BYTES)
        return page


def _is_registrys(page: bytes) -> bool:
    """Whether the body of an error is a registry's: another server's 404 says nothing about schemas."""
    try:
        return "error_code" in json.loads(page)
    except (ValueError, TypeError):
        return False
