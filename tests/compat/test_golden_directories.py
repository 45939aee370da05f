"""Log directories that released versions wrote, opened by this one: everything is there, and the way back is open.

`python -m tools.golden_directories VERSION` writes an archive before its version is tagged. Each is opened here, read, written
to, and given back to the version that wrote it; Apache Kafka opens what the newest one wrote.
"""

import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Unavailable
from tests.support.jars.maven_jars import cache_folder
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import OTTLA, start_ottla
from tools.golden_directories import CODECS, FOLDER, OPEN_ID, SIZE_BYTES_MAX, START_MS, TOPICS, find_all, text, unpack

import ottla
from ottla import Admin, Producer

ROOT = Path(__file__).parents[2]
THIS_VERSION = re.sub(r"\.dev\d+$", "", ottla.__version__)


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """What git says of this checkout; an unpacked source distribution has none, and then it fails."""
    if shutil.which("git") is None:
        return subprocess.CompletedProcess(arguments, 1, b"", b"")
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)


def number_of(archive: Path) -> tuple[int, ...]:
    return tuple(map(int, archive.name.removesuffix(".tar.xz").split(".")))


ARCHIVES = sorted(FOLDER.glob("*.tar.xz"), key=number_of)
CASES = [
    pytest.param(archive, state, id=f"{archive.name.removesuffix('.tar.xz')}-{state}", marks=marks)
    for archive in ARCHIVES
    for state in ("clean", "unclean")
    for marks in [() if (archive, state) == (ARCHIVES[-1], "unclean") else pytest.mark.slow]
]


def test_every_tagged_version_has_an_archive() -> None:
    tags = git("tag", "--list", "v*.*.*").stdout.decode()
    tagged = {tag[1:] for tag in tags.split() if re.fullmatch(r"v\d+\.\d+\.\d+", tag)}
    kept = {archive.name.removesuffix(".tar.xz") for archive in ARCHIVES}
    assert tagged | {THIS_VERSION} <= kept, "python -m tools.golden_directories VERSION writes it"
    assert all(archive.stat().st_size <= SIZE_BYTES_MAX for archive in ARCHIVES)


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """What is not as it was. Compaction may have gone on: then each key's last record is there, and no other than before."""
    wrong = [name for name in expected if name != "records" and found[name] != expected[name]]
    for place, before in expected["records"].items():
        now = found["records"][place]
        if place.startswith("compacted-"):
            last = {record[2]: record for record in before}
            is_right = {record[2]: record for record in now} == last and all(record in before for record in now)
        else:
            is_right = now == before
        wrong += [] if is_right else [place]
    return wrong


def write_on(bootstrap: str, expected: dict[str, Any]) -> None:
    """New records in every topic, the end of the transaction that was left open, a commit of a group."""
    for codec in CODECS:
        with Producer(bootstrap, compression_type=codec) as producer:
            sent = [producer.send(f"codec-{codec}", b"later", partition=0, timestamp=START_MS) for _ in range(10)]
            first = len(expected["records"][f"codec-{codec}-0 read_uncommitted"])
            assert [each.result().offset for each in sent] == list(range(first, first + 10))
    with Producer(bootstrap) as producer:
        for topic in ("segments", "compacted"):
            producer.send(topic, b"later", key=b"k0", partition=0, timestamp=START_MS + 3_600_000).result()
    with Producer(bootstrap, transactional_id=OPEN_ID) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("transactions", b"later", partition=0)
    with Admin(bootstrap) as admin:
        admin.alter_consumer_group_offsets("committed-by-admin", {("codec-none", 0): 70}).raise_first()


def start_version(version: str, settings: dict[str, Any], data: Path) -> KafkaServer:
    """A node of a released version; another than this one is run from its source in git."""
    return start_source(None if version == THIS_VERSION else f"v{version}", settings, data)


def start_source(tag: str | None, settings: dict[str, Any], data: Path) -> KafkaServer:
    """A node of the version at a tag, with pure kernels, so that nothing has to be built; of this version without a tag."""
    command = list(OTTLA)
    if tag is not None:
        command = ["env", f"PYTHONPATH={source_of(tag)}", "OTTLA_PURE=1", *OTTLA]
    server = KafkaServer([*command, "server", "start"], settings, data, name=f"Ottla {tag or THIS_VERSION}")
    server.start()
    return server


def source_of(tag: str) -> Path:
    """The folder with the package as it was at a tag."""
    commit = git("rev-parse", tag)
    if commit.returncode != 0:
        raise Unavailable(f"{tag} is not in this checkout: fetch its tags to try the way back to it")
    folder = cache_folder() / "ottla-source" / commit.stdout.decode().strip()
    if not folder.exists():
        packed = git("archive", tag, "src").stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
    return folder / "src"


@pytest.mark.parametrize(("archive", "state"), CASES)
def test_a_directory_of_a_released_version_is_opened_written_to_and_given_back(
    archive: Path, state: str, tmp_path: Path
) -> None:
    kept = unpack(archive, tmp_path)
    data, settings, expected = tmp_path / state, kept["settings"], kept["expected"]
    with start_ottla(settings, data_dir=data) as server:
        assert differences(find_all(server.bootstrap), expected) == []
        write_on(server.bootstrap, expected)
        later = find_all(server.bootstrap)
        assert differences(later, expected), "something was written"
        assert later["features"] == expected["features"], "an upgrade raises no level by itself"
        committed = [record[3] for record in later["records"]["transactions-0 read_committed"]]
        assert text(b"never committed") not in committed
        assert text(b"later") in committed
    with start_version(kept["version"], settings, data) as server:
        assert differences(find_all(server.bootstrap), later) == []


@pytest.mark.slow  # Apache Kafka
@pytest.mark.parametrize("state", ["clean", "unclean"])
def test_apache_kafka_opens_what_the_newest_version_wrote(apache_kafka: ApacheKafka, state: str, tmp_path: Path) -> None:
    kept = unpack(ARCHIVES[-1], tmp_path)
    with apache_kafka.start_server(kept["settings"], data_dir=tmp_path / state) as server:
        found = find_all(server.bootstrap)
        assert differences(found, kept["expected"]) == []
        write_on(server.bootstrap, kept["expected"])
        later = find_all(server.bootstrap)
    with start_ottla(kept["settings"], data_dir=tmp_path / state) as server:
        assert differences(find_all(server.bootstrap), later) == []


@pytest.mark.slow  # pure kernels
def test_another_version_is_started_from_its_source_in_git(tmp_path: Path) -> None:
    kept = unpack(ARCHIVES[-1], tmp_path)
    with start_source("HEAD", kept["settings"], tmp_path / "clean") as server:
        assert "(pure Python kernels)" in server.log_text()
        assert differences(find_all(server.bootstrap), kept["expected"]) == []
    with pytest.raises(Unavailable, match=r"v0\.0\.9 is not in this checkout"):
        source_of("v0.0.9")


def test_records_of_every_kind_are_kept(tmp_path: Path) -> None:
    """The archive has what its name promises, so that opening it means something."""
    kept = unpack(ARCHIVES[-1], tmp_path)
    expected = kept["expected"]
    assert set(TOPICS) <= {place.rpartition("-")[0] for place in expected["records"]}
    for state in ("clean", "unclean"):
        assert len(list((tmp_path / state / "segments-0").glob("*.log"))) > 3
        assert (tmp_path / state / ".kafka_cleanshutdown").exists() == (state == "clean")
    uncommitted, committed = (
        expected["records"][f"transactions-0 {isolation}"] for isolation in ("read_uncommitted", "read_committed")
    )
    assert len(uncommitted) > len(committed) > 0
    assert expected["acls"]
    assert expected["users"] == {"alice": [["SCRAM_SHA_256", 4096]]}
