"""One node of a cluster as its parent sees it: what it prints, and that it ends with its parent."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import run_ottla

from ottla.broker.solo_settings import solo_settings
from ottla.cli.node.cluster import CHILD
from ottla.cli.node.cluster_child import Release


@contextmanager
def child(settings: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, *CHILD], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"settings": settings, "level": "INFO", "log_dir": None}) + "\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def formatted(folder: Path) -> dict[str, str]:
    settings = solo_settings("127.0.0.1", 0, str(folder / "data"))
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    cluster_id = run_ottla("storage", "random-uuid").stdout.strip()
    assert run_ottla("storage", "format", "--standalone", "-t", cluster_id, "-c", file).returncode == 0
    return settings


def test_it_says_when_it_is_ready_ignores_interrupts_and_stops_with_its_parent(tmp_path: Path) -> None:
    with child(formatted(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        server = json.loads(process.stdout.readline())["bootstrap_servers"]
        process.send_signal(signal.SIGINT)
        assert run_ottla("topics", "list", "--bootstrap-server", server).returncode == 0
        process.stdin.close()
        assert process.wait(HANG_S) == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_it_says_why_it_cannot_start(tmp_path: Path) -> None:
    with child(solo_settings("127.0.0.1", 0, str(tmp_path / "data"))) as process:
        assert process.stdout is not None
        assert "format it first" in json.loads(process.stdout.readline())["error"]
        assert process.wait(HANG_S) == 1


def test_a_stopping_node_says_that_it_has_left_and_waits_for_its_release() -> None:
    async def scenario() -> None:
        release, said = Release(), []
        waiting = asyncio.ensure_future(release.wait(lambda: said.append("left")))
        await asyncio.sleep(0.01)
        assert said == ["left"]
        assert not waiting.done()
        threading.Thread(target=release.give).start()
        await asyncio.wait_for(waiting, 30)

    asyncio.run(scenario())


def test_a_release_may_come_first() -> None:
    release = Release()
    release.give()
    asyncio.run(asyncio.wait_for(release.wait(lambda: None), 30))
