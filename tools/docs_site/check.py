"""What is wrong with a built site: links and anchors that lead nowhere, and what a browser would load from other hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
"""Elements that a browser loads by itself. A link rel=canonical and the like is not loaded."""
LOADED_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "manifest", "modulepreload"}
OUTSIDE = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
STYLE_LOAD = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")
GENERATED = {"404.html"}
"""Written for any address, so that its links begin at the root."""


class Page(HTMLParser):
    """The ids, the links and the loads of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        is_loaded = tag != "link" or LOADED_RELATIONS & set(found.get("rel", "").split())
        if tag in LOADING and LOADING[tag] in found and is_loaded:
            self.loads.append(found[LOADING[tag]])


def problems_of(site: Path) -> list[str]:
    """One sentence for each problem of the site."""
    pages = {
        path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html")) if path.name not in GENERATED
    }
    if not pages:
        return [f"{site} has no pages"]
    problems = [problem for path, page in pages.items() for problem in page_problems(site, path, page, pages)]
    for path in sorted(site.rglob("*.css")):
        problems += [f"{path.relative_to(site)} loads {url}" for url in STYLE_LOAD.findall(path.read_text(encoding="utf-8"))]
    return problems


def page_problems(site: Path, path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    name = path.relative_to(site)
    for load in page.loads:
        if OUTSIDE.match(load):
            yield f"{name} loads {load} from another host"
        elif not load.startswith("data:") and not (path.parent / unquote(load.partition("?")[0])).exists():
            yield f"{name} loads {load}, which is not there"
    for link in page.links:
        if OUTSIDE.match(link) or link.startswith(("mailto:", "javascript:")):
            continue
        target, _, anchor = unquote(link).partition("#")
        file = (path.parent / target.partition("?")[0]).resolve() if target else path.resolve()
        if file.is_dir():
            file /= "index.html"
        if not file.exists():
            yield f"{name} links to {link}, which is not there"
        elif anchor and file in pages and anchor not in pages[file].ids:
            yield f"{name} links to {link}: the page has no such heading"
