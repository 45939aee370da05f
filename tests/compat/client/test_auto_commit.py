"""Programs that commit automatically are killed at random moments: no record is skipped, and no commit runs ahead of the work.

The program writes each number down when it has dealt with it. It is a static member, so that the next start gets the partitions
at once and does not wait for the session of the killed one.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer

from ottla import Admin

PARTITIONS = 3
KILLS = 5
PER_KILL = 60
SETTINGS = """dict(
    group_id=topic, group_instance_id="one", auto_offset_reset="earliest", auto_commit_interval_ms=5, max_poll_records=7
)"""
HEAD = f"""
import sys, time
import ottla
from ottla import aio
bootstrap, topic = sys.argv[1:]
settings = {SETTINGS}

def work(record):
    time.sleep(0.001)
    with open("worked", "a") as file:
        file.write(f"{{record.partition}} {{record.offset}} {{int(record.value)}}\\n")
"""
PROGRAMS = {
    "sync polls": """
with ottla.Consumer(bootstrap, **settings) as consumer:
    consumer.subscribe([topic])
    while True:
        for record in consumer.poll(1.0):
            work(record)
""",
    "sync iteration": """
with ottla.Consumer(bootstrap, **settings) as consumer:
    consumer.subscribe([topic])
    for record in consumer:
        work(record)
""",
    "aio iteration": """
import asyncio

async def main():
    async with aio.Consumer(bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        async for record in consumer:
            work(record)

asyncio.run(main())
""",
}


@contextmanager
def running(program: str, bootstrap: str, topic: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program, killed at the end of the block."""
    process = subprocess.Popen([sys.executable, "-c", HEAD + PROGRAMS[program], bootstrap, topic], cwd=folder)
    try:
        yield process
    finally:
        assert process.poll() is None, f"the program ended with {process.returncode}"
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_S)


def worked(folder: Path) -> list[tuple[int, int, int]]:
    """(partition, offset, number) of what was dealt with. A kill may have cut the last line."""
    path = folder / "worked"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [(int(fields[0]), int(fields[1]), int(fields[2])) for line in lines if len(fields := line.split()) == 3]


@pytest.mark.parametrize(
    "program", ["sync polls", *(pytest.param(each, marks=pytest.mark.slow) for each in PROGRAMS if each != "sync polls")]
)
def test_automatic_commits_under_kills_skip_nothing(cluster: KafkaServer, topic: str, tmp_path: Path, program: str) -> None:
    make_topic(cluster.bootstrap, topic, PARTITIONS)
    chance = Random(program)
    sent: list[str] = []
    with Admin(cluster.bootstrap) as admin:
        for _ in range(KILLS):
            sent += send_numbers(cluster.bootstrap, topic, PARTITIONS, len(sent), PER_KILL)
            with running(program, cluster.bootstrap, topic, tmp_path) as process:
                goal = len(worked(tmp_path)) + chance.randrange(1, PER_KILL)
                await_true(
                    lambda process=process, goal=goal: process.poll() is not None or len(worked(tmp_path)) >= goal,
                    f"{goal} lines of work",
                )
                time.sleep(chance.random() / 50)  # a random moment is the point
            done = {(partition, offset) for partition, offset, _ in worked(tmp_path)}
            committed = admin.list_consumer_group_offsets([topic])[topic]
            for (_, partition), position in committed.items():
                ahead = [offset for offset in range(position.offset if position else 0) if (partition, offset) not in done]
                assert ahead == [], f"partition {partition} was committed at {position}, before these were dealt with"
        with running(program, cluster.bootstrap, topic, tmp_path) as process:
            wanted = {int(value) for value in sent}
            await_true(
                lambda: process.poll() is not None or {number for *_, number in worked(tmp_path)} == wanted,
                "everything to be dealt with",
            )
            assert {number for *_, number in worked(tmp_path)} == wanted
