"""The examples of docs/application.md run; its application is killed in the middle of its work and loses nothing."""

from __future__ import annotations

import gc
import json
import logging
import re
import signal
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from tests.compat.client.clients_page import ADDRESS, title
from tests.support.servers.kafka_server import HANG_S

from ottla import Admin
from ottla.testing import Broker

PAGE = Path(__file__).parents[3] / "docs" / "application.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
PROGRAMS = {"sync": BLOCKS[0], "aio": BLOCKS[1]}
"""They run until they are told to stop."""
EXAMPLES = BLOCKS[2:]
PARTITIONS = 3
TOTAL = 1200
KEYS = 40
POISON = {number for number in range(TOTAL) if number % 37 == 5}
"""Neither JSON nor an order."""
REFUSED = {number for number in range(TOTAL) if number % 53 == 7}
"""Orders that the handler never takes."""

HANDLE = """
import time
from pathlib import Path

def work(record):
    table = record.value.table if hasattr(record.value, "table") else record.value["table"]
    time.sleep(0.005)
    if table % 53 == 7:
        raise LookupError(f"there is no table {table}")
    with open("handled", "a") as file:
        file.write(f"{record.partition} {record.offset} {table}\\n")

"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"group.min.session.timeout.ms": 100, "group.initial.rebalance.delay.ms": 0}
    with Broker(settings) as broker:
        broker.create_topic("orders", partitions=PARTITIONS)
        for number in range(9):
            broker.produce("orders", json.dumps({"table": number}), partition=number % PARTITIONS)
        yield broker


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_example_of_the_page(
    example: str, broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    code = compile(example.replace(ADDRESS, f'"{broker.bootstrap_servers}"'), "example", "exec")
    gc.collect()  # what other tests have left behind must not warn in this one
    with caplog.at_level(logging.WARNING, "ottla.client"), warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        exec(code, vars(module))
        vars(module).clear()
        gc.collect()
    warned = [record.getMessage() for record in caplog.records if record.name.startswith("ottla.client")]
    assert (warned, [str(each.message) for each in shown]) == ([], []), "an example must not warn"


def await_true(what: str, is_true: Callable[[], bool], program: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not is_true():
        assert program.poll() is None, f"the program ended while the test waited for {what}"
        assert time.monotonic() < deadline_s, f"waited {HANG_S} s for {what}"
        time.sleep(0.01)


@contextmanager
def running(kind: str, broker: Broker, folder: Path, *, is_worked: bool) -> Iterator[subprocess.Popen[str]]:
    """The application of the page as a program; with `is_worked`, its handler writes down what it handles."""
    address = f'"{broker.bootstrap_servers}"'
    # A killed member keeps its partitions for the session's time: the default of 45 s would only make the test long.
    settings = "session_timeout_ms=1000, heartbeat_interval_ms=100,"
    code = re.sub(r'(Consumer\(\s*)"localhost:9092",', rf"\1{address}, {settings}", PROGRAMS[kind])
    code = code.replace(ADDRESS, address).replace("backoff_s=0.5", "backoff_s=0.01")
    if is_worked:
        code = HANDLE + code.replace("    print(record.key, record.value", "    work(record)\n    (record.key, record.value")
        code = code.replace("concurrency=100", "concurrency=4")
    script = folder / "application.py"
    script.write_text(code, encoding="utf-8")
    program = subprocess.Popen([sys.executable, str(script)], cwd=folder, stdout=subprocess.DEVNULL, text=True)
    try:
        yield program
    finally:
        program.kill()
        program.wait(HANG_S)


def committed(admin: Admin, group: str) -> dict[int, int]:
    found = admin.list_consumer_group_offsets([group])[group]
    return {each.partition: at.offset for each, at in found.items() if at is not None}


GROUPS = {"sync": "billing", "aio": "kitchen"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_application_of_the_page_handles_and_stops(kind: str, broker: Broker, tmp_path: Path) -> None:
    with Admin(broker.bootstrap_servers) as admin, running(kind, broker, tmp_path, is_worked=False) as program:
        ends = broker.end_offsets("orders")
        await_true("everything to be committed", lambda: committed(admin, GROUPS[kind]) == ends, program)
        program.send_signal(signal.SIGTERM)
        assert program.wait(HANG_S) == 0


Place = tuple[int, int]
"""Partition and offset."""


def handled(folder: Path) -> list[tuple[Place, int]]:
    """The places and numbers of the records that the handler dealt with, in order."""
    path = folder / "handled"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [((int(partition), int(offset)), int(number)) for partition, offset, number in map(str.split, lines)]


def dead(broker: Broker) -> set[Place]:
    """The places of the records that are dead letters."""
    found = [dict(letter.headers) for letter in broker.records("orders.dead")] if "orders.dead" in broker.topics() else []
    return {(int(each["__connect.errors.partition"]), int(each["__connect.errors.offset"])) for each in found}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_application_loses_nothing_when_it_is_killed(kind: str, tmp_path: Path) -> None:
    """It is stopped and killed at random moments. Nothing is committed that was neither handled nor a dead letter."""
    chance = Random(7)
    settings = {"group.min.session.timeout.ms": 100, "group.initial.rebalance.delay.ms": 0}
    with Broker(settings) as broker, Admin(broker.bootstrap_servers) as admin:
        broker.create_topic("orders", partitions=PARTITIONS)
        places: dict[int, Place] = {}
        for number in range(TOTAL):
            value = "no order" if number in POISON else json.dumps({"table": number})
            stored = broker.produce("orders", value, key=f"k{number % KEYS}")
            places[number] = (stored.partition, stored.offset)
        ends = broker.end_offsets("orders")

        def check() -> None:
            done = {place for place, _ in handled(tmp_path)} | dead(broker)
            for partition, end in committed(admin, GROUPS[kind]).items():
                missing = {(partition, offset) for offset in range(end)} - done
                assert not missing, f"committed without being handled: {missing}"

        ways = [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT]
        for step, way in enumerate(ways, 1):
            with running(kind, broker, tmp_path, is_worked=True) as program:
                count = min(TOTAL * step // 8, TOTAL - len(POISON | REFUSED)) + chance.randrange(20)
                await_true(f"{count} records", lambda count=count: len(dict(handled(tmp_path))) >= count, program)
                program.send_signal(way)
                assert program.wait(HANG_S) == (-way if way is signal.SIGKILL else 0)
            check()
        with running(kind, broker, tmp_path, is_worked=True) as program:
            await_true("everything to be committed", lambda: committed(admin, GROUPS[kind]) == ends, program)
            program.send_signal(signal.SIGTERM)
            assert program.wait(HANG_S) == 0
        check()
        all_places = {*places.values()}
        worked = handled(tmp_path)
        assert {place for place, _ in worked} | dead(broker) == all_places
        assert dead(broker) == {places[number] for number in POISON | REFUSED}
    assert {number for _, number in worked}.isdisjoint(POISON | REFUSED)
    first_times: dict[int, list[Place]] = defaultdict(list)
    for place, number in dict(worked).items():
        first_times[number % KEYS].append(place)
    for key, found in first_times.items():
        assert found == sorted(found), f"the records of key {key} were not handled in order"
