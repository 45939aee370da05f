"""Several sinks in one session: Spark commits a query's batches in several Python processes in turn, and nothing ends for it.

`OTTLA_COMPANY_S` is how long the queries run beside each other; 60 s by default.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any

import pytest
from tests.spark.sink.company import AT_LEAST_ONCE, DELTA, EXACTLY_ONCE
from tests.spark.sink.killing import KEYS, PARTITIONS, descendants, name_of
from tests.spark.sink.sink_work import HANG_S, committed_pairs
from tests.support.servers.apache_kafka import ApacheKafka

from ottla import Admin, Producer
from ottla.testing import Broker

PROGRAM = Path(__file__).with_name("company.py")
COMPANY_S = float(os.environ.get("OTTLA_COMPANY_S", "60"))
KILLS = 5
RECORDS = 50
SIGKILL = 9


class Company:
    """The program, and what it is to have written."""

    def __init__(self, bootstrap: str, folder: Path, two_phase: str) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._two_phase = two_phase
        self._process: subprocess.Popen[Any] | None = None
        self._children: set[int] = set()
        self.sent = 0
        with Admin(bootstrap) as admin:
            admin.create_topics(dict.fromkeys(("input", *EXACTLY_ONCE, AT_LEAST_ONCE), PARTITIONS)).raise_first()
        self.start()

    def __enter__(self) -> Company:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        command = [sys.executable, str(PROGRAM), self._bootstrap, str(self._folder), self._two_phase]
        with (self._folder / "log").open("ab") as log:
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def kill(self) -> None:
        """Kill the driver with its JVM and its Python processes."""
        assert self._process is not None
        family = descendants(self._process.pid)
        self._children |= family
        for each in (self._process.pid, *sorted(family, key=lambda pid: "java" not in name_of(pid))):
            with suppress(ProcessLookupError):
                os.kill(each, SIGKILL)
        self._process.wait(HANG_S)

    def kill_a_python_process(self, random: Random) -> None:
        """Kill one of Spark's Python processes: a task's, or one that plans or commits."""
        assert self._process is not None
        found = sorted(pid for pid in descendants(self._process.pid) if "python" in name_of(pid))
        if found:
            with suppress(ProcessLookupError):
                os.kill(random.choice(found), SIGKILL)

    def feed(self) -> None:
        numbers = range(self.sent, self.sent + RECORDS)
        with Producer(self._bootstrap) as producer:
            keys = [b"k%d" % (number % KEYS) for number in numbers]
            producer.send_many("input", [b"%d" % number for number in numbers], keys=keys).wait(HANG_S)
        self.sent += RECORDS

    @property
    def failures(self) -> str:
        noted = self._folder / "failures"
        return noted.read_text(encoding="utf-8") if noted.exists() else ""

    def written(self) -> dict[str, Counter[int]]:
        """By sink: how often each result is there."""
        found = {}
        for topic in (*EXACTLY_ONCE, AT_LEAST_ONCE):
            pairs = committed_pairs(self._bootstrap, topic, PARTITIONS)
            found[topic] = Counter(int(value.removeprefix(b"r")) for _, value in pairs)
        found[DELTA] = self._in_delta()
        return found

    def _in_delta(self) -> Counter[int]:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            values = DeltaTable(str(self._folder / DELTA)).to_pyarrow_table()["value"].to_pylist()
        except TableNotFoundError:
            return Counter()
        return Counter(int(str(value).removeprefix("r")) for value in values)

    def check(self, is_killed: bool) -> None:
        """Wait until every sink has every result; those that promise it have each once."""
        expected = set(range(self.sent))
        deadline_s = time.monotonic() + 2 * HANG_S
        found = self.written()
        while any(set(counts) != expected for counts in found.values()):
            assert time.monotonic() < deadline_s, f"{ {name: len(each) for name, each in found.items()} }; {self.failures}"
            time.sleep(0.5)  # Spark tells nobody outside of its process when a batch ends
            found = self.written()
        doubled = {name: [n for n, count in counts.items() if count > 1] for name, counts in found.items()}
        if is_killed:
            doubled.pop(AT_LEAST_ONCE)
        assert not any(doubled.values()), doubled
        (self._folder / "stop").touch()
        assert self._process is not None
        self._process.wait(HANG_S)


def run_quietly(company: Company) -> None:
    """Nothing is killed: no query may end."""
    deadline_s = time.monotonic() + COMPANY_S
    while time.monotonic() < deadline_s:
        company.feed()
        time.sleep(0.3)
        assert company.failures == ""
    company.check(is_killed=False)


def run_with_kills(company: Company, seed: int, more: Callable[[], None] | None = None) -> None:
    random = Random(seed)
    for number in range(KILLS * 3):
        company.feed()
        time.sleep(random.uniform(2, 8))
        company.feed()
        if number % 3 == 0:
            company.kill()
            company.start()
        elif number % 3 == 1 or more is None:
            company.kill_a_python_process(random)
        else:
            more()
    company.check(is_killed=True)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("two_phase", ["false", "auto"])
def test_five_queries_in_one_session(two_phase: str, tmp_path: Path) -> None:
    settings = {"transaction.two.phase.commit.enable": "true"}
    with Broker(settings, process=True) as broker, Company(broker.bootstrap_servers, tmp_path, two_phase) as company:
        run_quietly(company)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_five_queries_in_one_session_on_apache_kafka(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with apache_kafka.start_server() as server, Company(server.bootstrap, tmp_path, "auto") as company:
        run_quietly(company)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_five_queries_whose_processes_and_broker_are_killed(tmp_path: Path) -> None:
    with Broker(process=True) as broker, Company(broker.bootstrap_servers, tmp_path, "auto") as company:

        def restart() -> None:
            broker.kill()
            broker.start()

        run_with_kills(company, 1, restart)
