"""`running_console`: the console in a thread of this process, and a small browser without JavaScript for it.

with running_console(broker.bootstrap_servers) as console:
    console.api("/groups")
    console.post("/groups/billing/delete", {"confirm": "billing"})
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from typing import Any, TypeVar
from urllib.parse import urlencode

from tests.support.servers.kafka_server import HANG_S

from ottla.cli.node.companions import listen, url_of
from ottla.config.client import admin_settings
from ottla.console.app import ConsoleSettings
from ottla.console.server import serve


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

    @property
    def place(self) -> str:
        """Where a change led to."""
        return str(self.headers.get("Location", ""))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        return None


class RunningConsole:
    """A console that serves, and a client with cookies and headers of its own."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, bootstrap: str = "") -> None:
        self.url = url
        self.bootstrap = bootstrap
        """The first cluster."""
        self.headers = dict(headers or {})
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()), _NoRedirects())

    def get(self, path: str, **headers: str) -> Answer:
        """A page; `path` may be a whole URL."""
        url = path if path.startswith("http") else self.url + path
        return self._ask(urllib.request.Request(url, headers={**self.headers, **headers}))

    def page(self, path: str) -> str:
        """A page that must be there, well-formed and without anything that scripts could hide in."""
        answer = self.get(path)
        assert answer.status == 200, answer.text
        check_page(answer.text)
        return answer.text

    def api(self, path: str) -> Any:
        answer = self.get(f"/api{path}")
        assert answer.status == 200, answer.text
        return answer.json()

    def post(self, path: str, form: Mapping[str, str] | list[tuple[str, str]], **headers: str) -> Answer:
        """Send a form, with the token of the session."""
        fields = list(form.items()) if isinstance(form, Mapping) else form
        data = urlencode([*fields, ("csrf", self.token())]).encode()
        return self._ask(urllib.request.Request(self.url + path, data, {**self.headers, "Origin": self.url, **headers}))

    def done(self, path: str, form: Mapping[str, str] | list[tuple[str, str]]) -> str:
        """Make a change that must succeed; what was done."""
        answer = self.post(f"/api{path}", form)
        assert answer.status == 200, answer.text
        return str(answer.json()["done"])

    def raw(self, path: str, data: bytes, **headers: str) -> Answer:
        """A POST as it is."""
        return self._ask(urllib.request.Request(self.url + path, data, {**self.headers, **headers}))

    def events(self, path: str, headers: Mapping[str, str] | None = None) -> Iterator[tuple[str, Any, str]]:
        """Name, data and id of a stream's events, until it ends."""
        request = urllib.request.Request(self.url + path, headers={**self.headers, **(headers or {})})
        with self._opener.open(request, timeout=HANG_S) as response:
            fields: dict[str, str] = {}
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "event" in fields:
                    yield fields["event"], json.loads(fields["data"]), fields.get("id", "")
                    fields = {}

    def token(self) -> str:
        return self.get("/pipelines").text.split('data-csrf="')[1].split('"')[0]

    def _ask(self, request: urllib.request.Request) -> Answer:
        try:
            with self._opener.open(request, timeout=HANG_S) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.headers, refused.read())


T = TypeVar("T")


def eventually(look: Callable[[], T], is_right: Callable[[T], bool], within_s: float = HANG_S) -> T:
    """What is there as soon as it is right: brokers learn of changes after the controller has answered."""
    deadline_s = time.monotonic() + within_s
    while not is_right(found := look()):
        assert time.monotonic() < deadline_s, found
        time.sleep(0.05)
    return found


_VOID = {"meta", "link", "input", "img", "br", "hr", "col"}


class _Page(HTMLParser):
    """Elements that are closed in order, and no scripts but the console's own."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "script" and not str(attributes.get("src")).startswith("/static/"):
            self.problems.append(f"a script of its own: {attributes}")
        self.problems += [f"{tag} has {name}" for name in attributes if name.startswith("on") or name == "style"]
        if str(attributes.get("href", "")).lower().startswith("javascript:"):
            self.problems.append(f"a script as an address: {attributes}")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        optional = {"li", "p", "option", "td", "tr", "th"}
        while self.open and self.open[-1] != tag and self.open[-1] in optional:
            self.open.pop()
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing, at {self.getpos()}")


def check_page(text: str) -> None:
    """Raise what is wrong with a page."""
    parser = _Page()
    parser.feed(text)
    parser.close()
    assert parser.problems == [], (parser.problems, text)
    assert parser.open == [], (parser.open, text)


@contextmanager
def running_console(
    bootstrap: str | Mapping[str, str], properties: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[RunningConsole]:
    """A console for one cluster, or for several by their names. It allows changes unless told otherwise."""
    listener = listen("127.0.0.1", 0)
    options = {"hosts": frozenset({"127.0.0.1", "localhost"}), "allows_changes": True, **settings}
    named = {"test": bootstrap} if isinstance(bootstrap, str) else bootstrap
    ready, over = threading.Event(), threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        ending = asyncio.Event()
        loops.append((asyncio.get_running_loop(), ending))
        clusters = {name: admin_settings(each, None, dict(properties or {})) for name, each in named.items()}
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
        yield RunningConsole(url_of(listener), bootstrap=next(iter(named.values())))
    finally:
        for loop, ending in loops:
            if not over.is_set():
                loop.call_soon_threadsafe(ending.set)
        assert over.wait(HANG_S)
