"""The source of the site: which file of the repository becomes which page, and the site's settings.

Owns the list of pages: docs/*.md, docs/decisions, the documents at the root, tests/README.md, one page for each folder of
examples/, one for config/, and the reference. Links between files of the repository become links between pages; a link to a
file that is no page becomes plain text. The navigation is the table of docs/README.md, so that a page is listed in one place.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tools.docs_site.reference import reference_pages

SOURCE_FOLDER, SITE_FOLDER, CONFIG_NAME = "site-source", "site", "site.toml"
INDEX = Path("docs/README.md")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"^(```.*?^```|    .*?)$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
TABLE_ROW = re.compile(r"^\|.*$", re.MULTILINE)
"""Code hosts want bars within code escaped in tables; Zensical shows the escape."""
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
EXAMPLES = re.compile(r"^\|.*\n\|---.*\n(?:\| \[[\w-]+\]\(\.\./examples/.*\n)+", re.MULTILINE)
"""The table of examples in docs/pipelines.md."""
LANGUAGES = {".py": "python", ".yml": "yaml", ".sql": "sql", ".jsonl": "json", ".csv": "text", ".properties": "properties"}

EXTENSIONS = """
[project.markdown_extensions]
attr_list = {}
md_in_html = {}
tables = {}
"pymdownx.betterem" = {}
"pymdownx.highlight" = {pygments_lang_class = true}
"pymdownx.inlinehilite" = {}
"pymdownx.superfences" = {}
"pymdownx.tilde" = {subscript = false}

[project.markdown_extensions.toc]
permalink = true
slugify = {object = "pymdownx.slugs.slugify", kwds = {case = "lower"}}
"""
"""Anchors are what code hosts make of headings, so that a link works in both places."""

THEME = """
[project.theme]
language = "en"
font = false
logo = "logo.svg"
favicon = "logo.svg"
features = [
  "content.code.copy", "navigation.footer", "navigation.indexes", "navigation.path", "navigation.sections",
  "navigation.top", "navigation.tracking", "search.highlight", "toc.follow",
]

[[project.theme.palette]]
media = "(prefers-color-scheme)"
toggle = {icon = "lucide/sun-moon", name = "Use light colours"}

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle = {icon = "lucide/sun", name = "Use dark colours"}

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle = {icon = "lucide/moon", name = "Use the system's colours"}
"""


def page_of(path: Path) -> Path | None:
    """Where a file of the repository, or a folder, is in the site; None if it has no page."""
    parts = path.parts
    if parts == ("README.md",):
        return Path("index.md")
    if parts == ("tests", "README.md"):
        return Path("where-a-test-goes.md")
    if parts[:1] == ("examples",):
        return Path("examples", "index.md") if len(parts) == 1 else Path("examples", f"{parts[1]}.md")
    if parts[:1] == ("config",):
        return Path("config.md")
    if len(parts) == 1 and path.suffix == ".md":
        return Path(path.name.lower())
    if parts[:1] == ("docs",) and len(parts) > 1:
        inside = Path(*parts[1:])
        if inside.name == "README.md":
            return inside.with_name("index.md") if len(inside.parts) > 1 else Path("pages.md")
        return inside if inside.suffix else None
    return None


def repository_pages(root: Path) -> Iterator[Path]:
    """The Markdown files that become pages, relative to the repository."""
    yield from (Path(path.name) for path in sorted(root.glob("*.md")))
    yield from (path.relative_to(root) for path in sorted((root / "docs").rglob("*.md")))
    yield Path("tests/README.md")


def with_links(root: Path, path: Path, text: str) -> str:
    """`text` of the file `path` with its links to files as links to pages. Code is left alone."""
    page = page_of(path)
    assert page is not None

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        target, mark, anchor = target.partition("#")
        if not target or ":" in target:
            return found[0]
        file = Path(os.path.normpath(path.parent / target))
        to = page_of(file) if (root / file).exists() else file
        if to is None:
            return words
        if file.suffix == ".md" and words.strip("`").endswith(file.name):  # the name of a file is no name of a page
            words = title_of((root / file).read_text(encoding="utf-8"))
        return f"{image}[{words}]({os.path.relpath(to, page.parent)}{mark}{anchor})"

    pieces, at = [], 0
    for code in CODE.finditer(text):
        pieces += [text[at : code.start()], "\0"]
        at = code.end()
    pieces.append(text[at:])
    codes = iter(code[0] for code in CODE.finditer(text))
    return re.sub("\0", lambda _: next(codes), LINK.sub(link, "".join(pieces)))


def title_of(text: str) -> str:
    found = TITLE.search(text)
    return "" if found is None else found[1].replace("`", "")


def fenced(path: Path, shown: str, code: str = "") -> str:
    """A file as a block of code under its name."""
    code = code or path.read_text(encoding="utf-8")
    return f"`{shown}`\n\n```{LANGUAGES.get(path.suffix, 'text')}\n{code.rstrip()}\n```\n"


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in LANGUAGES)


def example_pages(root: Path) -> dict[Path, str]:
    """A page for each example, with all its files, and an index: the table of docs/pipelines.md says what each is for."""
    table = EXAMPLES.findall((root / "docs" / "pipelines.md").read_text(encoding="utf-8"))
    pages = {}
    for folder in sorted(path for path in (root / "examples").iterdir() if path.is_dir()):
        files = files_below(folder)
        files.sort(key=lambda path: (0 if "transformations" in path.parts else 1 if "tests" not in path.parts else 2, path))
        body = "\n".join(fenced(path, path.relative_to(folder).as_posix()) for path in files)
        run = f"    ottla pipeline test examples/{folder.name}\n    ottla pipeline run examples/{folder.name}\n"
        pages[Path("examples", f"{folder.name}.md")] = f"# Example: {folder.name}\n\n{run}\n{body}"
    head = "Pipelines to copy, each a folder with its own test. [From zero to a pipeline](../pipelines.md) explains the files."
    rows = table[0].replace("](../examples/", "](").replace(")", ".md)")
    pages[Path("examples", "index.md")] = f"# Examples\n\n{head}\n\n{rows}\n"
    return pages


def config_page(root: Path) -> str:
    blocks = "\n".join(fenced(path, path.relative_to(root).as_posix()) for path in files_below(root / "config"))
    head = "# Samples of server.properties\n\nFor one node, and for three. [Settings](configuration.md) explains each.\n"
    return f"{head}\n{blocks}"


def navigation(root: Path, pages: dict[Path, str]) -> list[object]:
    """The sections of docs/README.md with their pages, then the reference and the examples."""
    sections: list[tuple[str, list[object]]] = []
    seen: set[Path] = {Path("index.md")}
    for line in (root / INDEX).read_text(encoding="utf-8").splitlines():
        section = re.match(r"\| \*\*(.+)\*\* \| \|", line)
        if section:
            sections.append((section[1][0].upper() + section[1][1:], []))
        elif line.startswith("| "):
            for _, _, target in LINK.findall(line):
                page = page_of(Path(os.path.normpath(INDEX.parent / target.partition("#")[0])))
                if page is not None and page not in seen:
                    seen.add(page)
                    sections[-1][1].append({title_of(pages[page]): below(page, pages)})
    nav: list[object] = [{"Home": "index.md"}]
    nav += [{name: entries} for name, entries in sections]
    for name in ("reference", "examples"):
        inside = [page for page in pages if page.parts[0] == name and page.name != "index.md"]
        entries: list[object] = [f"{name}/index.md"]
        entries += [{title_of(pages[page]).removeprefix("Example: "): page.as_posix()} for page in inside]
        nav.append({name.capitalize(): entries})
    return nav


def below(page: Path, pages: dict[Path, str]) -> object:
    """A page as an entry of the navigation, with the pages of its folder if it is the folder's index."""
    if page.name != "index.md":
        return page.as_posix()
    others = [each for each in sorted(pages) if each.parent == page.parent and each != page]
    return [page.as_posix(), *({title_of(pages[each]): each.as_posix()} for each in others)]


def toml_value(value: object) -> str:
    """Lists, texts and dicts with one key, as TOML writes them inline."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_value(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def write_source(root: Path, target: Path) -> None:
    """Write pages, settings and pictures of the site below `target`."""
    source = target / SOURCE_FOLDER
    pages: dict[Path, str] = {}
    for path in repository_pages(root):
        page = page_of(path)
        assert page is not None
        pages[page] = with_links(root, path, (root / path).read_text(encoding="utf-8"))
    pages |= example_pages(root) | reference_pages()
    pages[Path("config.md")] = config_page(root)
    for page, text in pages.items():
        text = TABLE_ROW.sub(lambda row: re.sub(r"`[^`\n]+`", lambda span: span[0].replace("\\|", "|"), row[0]), text)
        if page.name == "files.md" or page.parts[0] == "decisions":
            text = "---\nsearch:\n  exclude: true\n---\n\n" + text  # for those who change Ottla; most readers use it
        (source / page).parent.mkdir(parents=True, exist_ok=True)
        (source / page).write_text(text, encoding="utf-8")
    for picture in (each for kind in ("*.svg", "*.png") for each in (root / "docs").glob(kind)):
        shutil.copy(picture, source / picture.name)
    here = Path(__file__).parent
    for name in ("style.css", "logo.svg", "file_worker.js"):
        shutil.copy(here / name, source / name)
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    settings = {
        "site_name": "Ottla",
        "site_description": project["description"],
        "docs_dir": SOURCE_FOLDER,
        "site_dir": SITE_FOLDER,
        "use_directory_urls": False,
        "extra_css": ["style.css"],
        "nav": navigation(root, pages),
    }
    lines = [f"{name} = {toml_value(value)}" for name, value in settings.items()]
    extra = "\n[project.extra]\ngenerator = false\n\n[project.plugins.offline]\n"
    (target / CONFIG_NAME).write_text("[project]\n" + "\n".join(lines) + "\n" + THEME + EXTENSIONS + extra, encoding="utf-8")
