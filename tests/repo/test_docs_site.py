"""The documentation as one site: links between pages, the list of pages, the reference of the public names, the build."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from tools.docs_site.check import problems_of
from tools.docs_site.pages import CODE, INDEX, LINK, navigation, page_of, repository_pages, title_of, with_links
from tools.docs_site.reference import OWN_ERRORS, PAGES, markdown, methods_of, names_of, public_names

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^#{1,6} (.+?)\s*$", re.MULTILINE)
MODULES = ("ottla", "ottla.aio", "ottla.errors", "ottla.testing", "ottla.spark")


@cache
def anchors(path: Path) -> set[str]:
    """The anchors that code hosts and the site make of a page's headings."""
    found: set[str] = set()
    for heading in HEADING.findall(CODE.sub(lambda each: each[0] if each[0].startswith("`") else "", path.read_text("utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


def test_anchors_in_links_between_documents_exist() -> None:
    broken = []
    checked = 0
    for path in repository_pages(ROOT):
        document = ROOT / path
        for _, _, target in LINK.findall(CODE.sub("", document.read_text("utf-8"))):
            file, mark, anchor = target.partition("#")
            if mark and ":" not in file:
                checked += 1
                if anchor not in anchors((document.parent / file).resolve() if file else document.resolve()):
                    broken.append(f"{path}: {target}")
    assert broken == []
    assert checked > 10


def test_every_page_is_in_the_list_of_pages_once() -> None:
    pages = {page: (ROOT / path).read_text("utf-8") for path in repository_pages(ROOT) if (page := page_of(path)) is not None}
    listed = list(pages_of(navigation(ROOT, pages)))
    assert len(listed) == len(set(listed))
    of_its_own = {"index.md", "pages.md", "reference/index.md", "examples/index.md"}
    assert {page.as_posix() for page in pages} - set(listed) - of_its_own == set(), f"add them to {INDEX}"


def pages_of(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        yield from (page for each in entry.values() for page in pages_of(each))
    elif isinstance(entry, list):
        yield from (page for each in entry for page in pages_of(each))


def test_links_become_links_between_pages_and_code_stays() -> None:
    text = (
        "[a](../README.md#speed) [docs/testing.md](testing.md) [c](../Makefile) `[a](../README.md)`\n\n    [a](../README.md)\n"
    )
    there = with_links(ROOT, Path("docs/clients.md"), text)
    assert there == (
        f"[a](index.md#speed) [{title_of((ROOT / 'docs/testing.md').read_text('utf-8'))}](testing.md) c `[a](../README.md)`"
        "\n\n    [a](../README.md)\n"
    )


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_docstring_and_so_has_every_method(name: str) -> None:
    if name == "ottla.spark":
        pytest.importorskip("pyspark")
    module = import_module(name)
    silent = []
    for each in public_names(module):
        value = getattr(module, each)
        said = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__ if callable(value) else "a constant"
        if not said or said.startswith(f"{each}("):  # what data classes and named tuples get without one
            silent.append(each)
        if inspect.isclass(value):
            silent += [f"{each}.{member}" for member, _ in methods_of(value) if not inspect.getdoc(getattr(value, member))]
    assert silent == []


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    pytest.importorskip("pyspark")
    for name in MODULES:
        found = [each for page in PAGES if page.module == name for each in names_of(page)]
        assert len(found) == len(set(found)), name
        elsewhere = OWN_ERRORS if name == "ottla.errors" else {"KafkaError"} if name == "ottla.testing" else set()
        assert set(found) == set(public_names(import_module(name))) - elsewhere, name


def test_an_example_in_a_docstring_becomes_a_block_of_code() -> None:
    assert markdown("Sends records.\n\nwith Producer() as p:\n    p.send(1)\n\nMore (or less).") == (
        "Sends records.\n\n```python\nwith Producer() as p:\n    p.send(1)\n```\n\nMore (or less).\n"
    )


def test_the_check_of_the_site_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1><a href="b.html#there">b</a><a href="b.html#gone">b</a><a href="c.html">c</a><a href="#top">a</a>'
        '<img src="no.svg"><script src="https://example.com/x.js"></script><link rel="canonical" href="https://example.com/">'
        '<a href="https://example.com/">elsewhere</a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>')
    (tmp_path / "s.css").write_text("@import 'https://example.com/f.css'; a { background: url(data:image/png;base64,) }")
    assert problems_of(tmp_path) == [
        "a.html loads no.svg, which is not there",
        "a.html loads https://example.com/x.js from another host",
        "a.html links to b.html#gone: the page has no such heading",
        "a.html links to c.html, which is not there",
        "s.css loads https://example.com/f.css",
    ]


WITHOUT_NETWORK = ["unshare", "--net", "--map-root-user"]


@pytest.mark.slow
def test_the_site_is_built_without_a_network_and_is_whole(tmp_path: Path) -> None:
    """The build ends with exit code 0 only if all links lead somewhere and nothing is loaded from another host."""
    command = [sys.executable, "-m", "tools.docs_site", "--target", str(tmp_path)]
    if shutil.which("unshare") and subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, check=False).returncode == 0:
        command = WITHOUT_NETWORK + command
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    home = (site / "index.html").read_text("utf-8")
    assert "Kafka in Python" in home
    assert "send_many" in (site / "reference" / "producer.html").read_text("utf-8")
    assert "unpkg.com" not in home
    assert "kafka_broker" in (site / "search.json").read_text("utf-8")


RUN_BY = {
    "README": "tests/repo/test_shape.py",
    "admin": "tests/compat/client/test_examples.py",
    "application": "tests/compat/client/test_application_page.py",
    "clients": "tests/compat/client/clients_page.py",
    "console": "tests/unit/console/test_console_page.py",
    "container": "tests/image/test_container_page.py",
    "cloud-logins": "tests/unit/client/test_tokens.py",
    "from-aiokafka": "tests/compat/client/test_moving_in.py",
    "from-confluent-kafka": "tests/compat/client/test_moving_in.py",
    "from-kafka-python": "tests/compat/client/test_moving_in.py",
    "kubernetes": "tests/repo/test_chart.py",
    "lag-and-alerts": "tests/unit/client/test_alerts.py",
    "metrics": "tests/unit/broker/test_metrics.py",
    "pipelines": "tests/spark/pipelines/test_pages.py",
    "pipelines-in-production": "tests/spark/pipelines/test_pages.py",
    "schema-checks": "tests/compat/registry/test_schema_validation.py",
    "schemas": "tests/compat/registry/test_schemas_page.py",
    "security": "tests/compat/security/test_security_page.py",
    "service": "tests/unit/cli/service/test_service.py",
    "spark": "tests/spark/test_reference_page.py",
    "sql": "tests/spark/sql/test_runner.py",
    "testing": "tests/unit/testing/test_docs.py",
    "upgrading": "tests/compat/cli/test_upgrading_page.py",
}
"""Which test runs the blocks of code of a page. Lines that begin with `ottla` are parsed on every page besides:
tests/unit/cli/test_commands_in_documents.py."""


def test_every_page_with_blocks_of_code_has_a_test_that_runs_them() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    with_code = {path.stem for path in pages if re.search(r"^```\w", path.read_text("utf-8"), re.MULTILINE)}
    assert with_code == set(RUN_BY)
    for name, test in RUN_BY.items():
        pattern = re.sub(r"^from-.*", "from-*", name)
        assert f"{pattern}.md" in (ROOT / test).read_text("utf-8"), test
