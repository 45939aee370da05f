"""The recipes of docs/clients.md keep their guarantees when the program is killed in the middle of its work.

A recipe runs as a program of its own, with work that writes down each number it gets. It is killed three times: while it works
on the number `CRASH_AT`, so that a poll is half done; after it has done everything there was; and at the end.
"""

import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from tests.compat.client.clients_page import RECIPES
from tests.support.servers.kafka_server import HANG_S

from ottla import Consumer
from ottla.testing import Broker

CRASH_AT = 5
NUMBERS = list(range(30))
PARTITIONS = 3
DATABASE = "results.db"

DRIVER = """
import signal, sys
from pathlib import Path

recipe, crash_at, arguments = sys.argv[1], int(sys.argv[2]), sys.argv[3:]

def work(record):
    number = int(record.value)
    if number == crash_at:
        Path("stopped").touch()
        while True:
            signal.pause()
    with open("worked", "a") as file:
        file.write(f"{number}\\n")
    return record.value

globals()[recipe](work, *arguments)
"""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.min.session.timeout.ms": 100}) as broker:
        broker.create_topic("orders", partitions=PARTITIONS)
        broker.create_topic("invoices", partitions=PARTITIONS)
        yield broker


def await_true(what: str, is_true: Callable[[], bool], program: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not is_true():
        assert program.poll() is None, f"the recipe ended while the test waited for {what}"
        assert time.monotonic() < deadline_s, f"waited {HANG_S} s for {what}"
        time.sleep(0.02)


@contextmanager
def running(
    recipe: str, broker: Broker, folder: Path, crash_at: int = -1, more_settings: str = ""
) -> Iterator[subprocess.Popen[bytes]]:
    """The recipe as a program, killed at the end of the block."""
    # A killed member keeps its partitions for the session's time: the default of 45 s would only make the test long.
    address = f'"{broker.bootstrap_servers}"'
    settings = f"session_timeout_ms=1000, heartbeat_interval_ms=200, auto_commit_interval_ms=10{more_settings}"
    code = re.sub(r'(Consumer\(\s*)"localhost:9092"', rf"\1{address}, {settings}", RECIPES[recipe])
    code = code.replace('"localhost:9092"', address)
    arguments = [DATABASE] if "database" in recipe else []
    command = [sys.executable, "-c", code + DRIVER, recipe, str(crash_at), *arguments]
    program = subprocess.Popen(command, cwd=folder)
    try:
        yield program
    finally:
        program.send_signal(signal.SIGKILL)
        program.wait(HANG_S)


def produce(broker: Broker, numbers: list[int]) -> None:
    for number in numbers:
        broker.produce("orders", str(number), partition=number % PARTITIONS)


def worked(folder: Path) -> list[int]:
    """The numbers that were worked on, in order."""
    path = folder / "worked"
    return [int(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def committed(broker: Broker) -> list[int]:
    """The numbers in `invoices`, without those of open and aborted transactions."""
    with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([("invoices", each) for each in range(PARTITIONS)])
        found: list[int] = []
        for each, end in consumer.end_offsets(consumer.assignment()).items():
            while consumer.position(each) < end:
                found += [int(record.value) for record in consumer.poll(timeout=1.0)]
        return found


def stored(folder: Path) -> list[int]:
    """The numbers in the database."""
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        return [int(value) for (value,) in database.execute("SELECT value FROM results")]


def run_with_crashes(
    recipe: str, broker: Broker, folder: Path, done: Callable[[], list[int]], half_done: Callable[[], bool] = lambda: True
) -> None:
    """Run the recipe over `NUMBERS`, with three kills. `done` are the numbers whose work counts as done."""
    produce(broker, NUMBERS[:10])
    with running(recipe, broker, folder, CRASH_AT) as program:
        await_true(f"number {CRASH_AT} to be worked on", (folder / "stopped").exists, program)
        await_true("its poll to be half done", half_done, program)
    for begin, end in ((10, 20), (20, 30)):
        produce(broker, NUMBERS[begin:end])
        with running(recipe, broker, folder) as program:
            await_true(f"numbers up to {end - 1}", lambda end=end, begin=begin: {*NUMBERS[begin:end]} <= {*done()}, program)


def test_at_most_once_handles_nothing_twice(broker: Broker, tmp_path: Path) -> None:
    run_with_crashes("at_most_once", broker, tmp_path, lambda: worked(tmp_path))
    assert max(Counter(worked(tmp_path)).values()) == 1
    assert CRASH_AT not in worked(tmp_path), "what was handed out before the crash is not handed out again"


def test_at_least_once_loses_nothing(broker: Broker, tmp_path: Path) -> None:
    run_with_crashes("at_least_once", broker, tmp_path, lambda: worked(tmp_path))
    assert sorted({*worked(tmp_path)}) == NUMBERS
    assert len(worked(tmp_path)) > len(NUMBERS), "the half done poll was worked on again"


def test_at_least_once_with_automatic_commits_loses_nothing(broker: Broker, tmp_path: Path) -> None:
    run_with_crashes("at_least_once_automatically", broker, tmp_path, lambda: worked(tmp_path))
    assert sorted({*worked(tmp_path)}) == NUMBERS


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("recipe", ["at_least_once", "at_least_once_automatically"])
def test_at_least_once_loses_nothing_while_copies_come_and_are_killed(
    broker: Broker, tmp_path: Path, recipe: str, assignor: str
) -> None:
    more_settings = f', partition_assignment_strategy="{assignor}"'
    with ExitStack() as copies:
        for begin in range(0, 150, 30):
            numbers = list(range(begin, begin + 30))
            copy = copies.enter_context(running(recipe, broker, tmp_path, more_settings=more_settings))
            with running(recipe, broker, tmp_path, more_settings=more_settings) as killed:
                produce(broker, numbers[:15])
                await_true(f"a number from {begin} on", lambda begin=begin: max(worked(tmp_path), default=-1) >= begin, killed)
                produce(broker, numbers[15:])
            await_true(f"numbers up to {numbers[-1]}", lambda numbers=numbers: {*numbers} <= {*worked(tmp_path)}, copy)
        assert sorted({*worked(tmp_path)}) == list(range(150))


def test_exactly_once_by_transaction(broker: Broker, tmp_path: Path) -> None:
    recipe = "exactly_once_by_transaction"
    run_with_crashes(recipe, broker, tmp_path, lambda: committed(broker), lambda: bool(broker.records("invoices")))
    assert sorted(committed(broker)) == NUMBERS
    assert len(broker.records("invoices")) > len(NUMBERS), "the aborted transaction had written records too"


def test_exactly_once_by_offsets_in_a_database(broker: Broker, tmp_path: Path) -> None:
    run_with_crashes("exactly_once_by_database", broker, tmp_path, lambda: stored(tmp_path))
    assert sorted(stored(tmp_path)) == NUMBERS
    assert len(worked(tmp_path)) > len(NUMBERS), "the half done poll was worked on again"


def test_every_recipe_of_the_page_is_tested() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    assert len(RECIPES) == 5
    assert [name for name in RECIPES if f'"{name}"' not in tests] == []
