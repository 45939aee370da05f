"""A refused start changes nothing: directories, ports and settings are looked at first."""

import asyncio
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.formatting import FormatOptions, format_directories
from ottla.broker.solo_settings import solo_settings
from ottla.cli.logs import configure_logging, discard_empty_files
from ottla.cli.node.start_check import check_start
from ottla.config.broker import BrokerConfig
from ottla.env.real.world import real_world
from ottla.errors import OttlaError


def tree(folder: Path) -> dict[str, Any]:
    return {str(each): each.read_bytes() if each.is_file() else None for each in sorted(folder.rglob("*"))}


def run_check(settings: dict[str, str], **options: Any) -> None:
    with real_world() as world:
        asyncio.run(check_start(world, settings, "localhost", **options))


@pytest.fixture
def formatted(tmp_path: Path) -> dict[str, str]:
    """The settings of a node whose directory is formatted, beside that of another cluster and a file."""
    for name, cluster_id in (("data", "AAAAAAAAAAAAAAAAAAAAAQ"), ("other", "AAAAAAAAAAAAAAAAAAAAAg")):
        settings = solo_settings("127.0.0.1", 0, str(tmp_path / name))
        with real_world() as world:
            options = FormatOptions(cluster_id, standalone=True)
            asyncio.run(format_directories(world, BrokerConfig.from_settings(settings), options))
    shutil.rmtree(tmp_path / "other" / "__cluster_metadata-0")
    (tmp_path / "file").write_text("a letter")
    return solo_settings("127.0.0.1", 0, str(tmp_path / "data"))


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"num.partitions": "many"}, "must be a whole number"),
        ({"listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"}, "the port is taken"),
        ({"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:{port}"}, "the port is taken"),
        ({"ottla.metrics.port": "{port}"}, "the port is taken"),
        ({"node.id": "7"}, "belongs to node 1, but this is node 7"),
        ({"log.dirs": "{folder}/new/deep"}, "has no meta.properties: format it first"),
        ({"log.dirs": "{folder}/data,{folder}/new"}, "new has no meta.properties"),
        ({"log.dirs": "{folder}/data,{folder}/other"}, "belongs to cluster AAAAAAAAAAAAAAAAAAAAAg"),
        ({"log.dirs": "{folder}/file/deep"}, "file is a file, not a folder"),
        ({"metadata.log.dir": "{folder}/other"}, "the metadata log belongs in"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, dict) else "",
)
def test_refused_start_changes_nothing(
    formatted: dict[str, str], taken: int, tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    before = tree(tmp_path)
    wrong = {name: text.format(folder=tmp_path, port=taken) for name, text in changed.items()}
    with pytest.raises(OttlaError, match=said):
        run_check(formatted | wrong)
    assert tree(tmp_path) == before


def test_directory_in_use_is_told_before_its_ports(formatted: dict[str, str], taken: int, tmp_path: Path) -> None:
    with real_world() as world:
        lock = world.disk.lock_directory(str(tmp_path / "data"))
        try:
            with pytest.raises(OttlaError, match="is already open in this process"):
                run_check(formatted | {"ottla.metrics.port": str(taken)})
        finally:
            lock.release()
    run_check(formatted)


def test_start_that_formats_needs_no_directory(tmp_path: Path) -> None:
    run_check(solo_settings("127.0.0.1", 0, str(tmp_path / "new")), formats_new=True)
    assert tree(tmp_path) == {}


def test_log_file_without_a_line_is_removed_with_its_folders(tmp_path: Path) -> None:
    import logging

    package = logging.getLogger("ottla")
    before = (package.handlers, package.propagate, package.level)
    try:
        for line, left in ((None, 0), ("a line", 3)):
            configure_logging(level="ERROR", directory=tmp_path / "logs" / "deep")
            if line is not None:
                package.warning(line)
            discard_empty_files()
            assert len(tree(tmp_path)) == left
            for handler in package.handlers:
                handler.close()
    finally:
        package.handlers, package.propagate, package.level = before
