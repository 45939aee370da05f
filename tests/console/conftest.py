"""The console beside a broker or a cluster of the test, on a free port."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.servers.kafka_server import HANG_S

from ottla.cli.node.companions import listen, url_of
from ottla.config.client import admin_settings
from ottla.console.app import ConsoleSettings
from ottla.console.server import serve
from ottla.testing import Broker


class Answer:
    """What the console answered."""

    def __init__(self, status: int, headers: Any, data: bytes) -> None:
        self.status = status
        self.headers = headers
        self.data = data

    @property
    def text(self) -> str:
        return self.data.decode()

    def json(self) -> Any:
        return json.loads(self.data)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        return None


class RunningConsole:
    """A console that serves, and a small client with cookies."""

    def __init__(self, url: str, bootstrap: str) -> None:
        self.url = url
        self.bootstrap = bootstrap
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()), _NoRedirects())

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask(urllib.request.Request(self.url + path, headers=headers))

    def api(self, path: str) -> Any:
        answer = self.get(f"/api{path}")
        assert answer.status == 200, answer.text
        return answer.json()

    def post(self, path: str, form: dict[str, str] | list[tuple[str, str]], headers: dict[str, str] | None = None) -> Answer:
        """Send a form, with the token of the session."""
        fields = list(form.items()) if isinstance(form, dict) else form
        data = urlencode([*fields, ("csrf", self.token())]).encode()
        return self._ask(urllib.request.Request(self.url + path, data, {"Origin": self.url, **(headers or {})}))

    def raw(self, path: str, data: bytes, **headers: str) -> Answer:
        return self._ask(urllib.request.Request(self.url + path, data, headers))

    def token(self) -> str:
        page = self.get("/topics").text
        return page.split('data-csrf="')[1].split('"')[0]

    def events(self, path: str, headers: dict[str, str] | None = None) -> Iterator[tuple[str, Any, str]]:
        """Name, data and id of a stream's events, until it ends."""
        with self._opener.open(urllib.request.Request(self.url + path, headers=headers or {}), timeout=HANG_S) as response:
            fields: dict[str, str] = {}
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "event" in fields:
                    yield fields["event"], json.loads(fields["data"]), fields.get("id", "")
                    fields = {}

    def _ask(self, request: urllib.request.Request) -> Answer:
        try:
            with self._opener.open(request, timeout=HANG_S) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.headers, refused.read())


@contextmanager
def running_console(bootstrap: str, **settings: Any) -> Iterator[RunningConsole]:
    """A console in a thread of this process."""
    listener = listen("127.0.0.1", 0)
    options = {"hosts": frozenset({"127.0.0.1", "localhost"}), "allows_changes": True, **settings}
    ready, over = threading.Event(), threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        ending = asyncio.Event()
        loops.append((asyncio.get_running_loop(), ending))
        clusters = {"test": admin_settings(bootstrap, None, {})}
        await serve(clusters, ConsoleSettings(**options), listener, ready.set, until=ending.wait())

    def work() -> None:
        try:
            asyncio.run(run())
        finally:
            over.set()
            ready.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        assert ready.wait(HANG_S)
        yield RunningConsole(url_of(listener), bootstrap)
    finally:
        for loop, ending in loops:
            if not over.is_set():
                loop.call_soon_threadsafe(ending.set)
        assert over.wait(HANG_S)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One broker for all tests: each takes topics of its own."""
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def console(broker: Broker) -> Iterator[RunningConsole]:
    with running_console(broker.bootstrap_servers) as running:
        yield running
