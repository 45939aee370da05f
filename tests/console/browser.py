"""Chromium for tests of the console: pages that fail a test if a script or the browser's console reports an error.

with chromium() as browser, browser.tab() as tab:
    tab.open(console.url + "/topics")
    tab.page.get_by_role("button", name="Create").click()
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers.kafka_server import HANG_S

SCREENSHOTS = "OTTLA_SCREENSHOTS"
"""The environment variable that names a folder for the documentation's pictures."""
AXE = "https://registry.npmjs.org/axe-core/-/axe-core-4.10.3.tgz"
AXE_SHA256 = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292"
CACHE = Path(os.environ.get("OTTLA_CACHE") or Path.home() / ".cache" / "ottla")


class NoBrowser(Exception):
    """Why there is no browser here."""


def axe_source() -> str:
    """axe-core, downloaded once and checked."""
    kept = CACHE / "axe-core-4.10.3.min.js"
    if not kept.exists():
        try:
            with urllib.request.urlopen(AXE, timeout=60) as response:
                data = response.read()
        except OSError as problem:
            raise NoBrowser(f"axe-core cannot be downloaded: {problem}") from None
        assert hashlib.sha256(data).hexdigest() == AXE_SHA256, "axe-core is not what it was"
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            file = archive.extractfile("package/axe.min.js")
            assert file is not None
            source = file.read()
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = kept.with_suffix(f".{os.getpid()}")
        new.write_bytes(source)
        new.replace(kept)
    return kept.read_text()


class Tab:
    """A page of a browser, and what went wrong on it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.problems: list[str] = []
        page.set_default_timeout(30_000)
        page.on("console", lambda said: self.problems.append(f"console: {said.text}") if said.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))

    def open(self, url: str) -> Any:
        answer = self.page.goto(url, wait_until="load")
        assert answer.status == 200, f"{url}: {answer.status}"
        return answer

    def check(self) -> None:
        """No script of a record has run, and nothing went wrong."""
        assert self.page.evaluate("window.hacked") is None
        assert self.problems == []

    def wide_by(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def violations(self) -> list[str]:
        """What axe-core finds that is serious."""
        self.page.evaluate(axe_source())
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    def picture(self, name: str) -> None:
        """A picture for the documentation, if somebody wants one."""
        folder = os.environ.get(SCREENSHOTS)
        if folder:
            self.page.screenshot(path=Path(folder) / f"{name}.png")


class Chromium:
    """A running browser."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    @contextmanager
    def tab(self, *, width: int = 1200, height: int = 800, scripts: bool = True, dark: bool = False) -> Iterator[Tab]:
        """A tab of its own session. Its end checks that nothing went wrong."""
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            java_script_enabled=scripts,
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
        )
        try:
            tab = Tab(context.new_page())
            yield tab
            if scripts:
                tab.check()
        finally:
            context.close()

    def unfit_pages(self, url: str, paths: Iterable[str], *, width: int, dark: bool) -> dict[str, list[str]]:
        """What axe-core finds on pages with all their details open, and how much wider than the window they are."""
        found = {}
        with self.tab(width=width, dark=dark) as tab:
            for path in paths:
                tab.open(url + path)
                tab.page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true })")
                wrong = tab.violations()
                if tab.wide_by() > 0:
                    wrong.append(f"{tab.wide_by()} pixels too wide")
                if wrong:
                    found[path] = wrong
        return found


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Debian's Chromium, driven by Playwright. Raises `NoBrowser`."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowser("Playwright is not installed: pip install 'ottla[dev]'") from None
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise NoBrowser("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"], timeout=HANG_S * 1000
        )
        try:
            yield Chromium(browser)
        finally:
            browser.close()
