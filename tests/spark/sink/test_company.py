"""Several sinks in one session: Spark commits a query's batches in several Python processes in turn, and nothing ends for it.

`OTTLA_COMPANY_S` is how long the queries run beside each other; 60 s by default.
"""

from __future__ import annotations

import json
import os
import signal
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
from tests.spark.pipelines.folders import write_pipeline
from tests.spark.sink.company import AT_LEAST_ONCE, DELTA, EXACTLY_ONCE
from tests.spark.sink.killing import KEYS, PARTITIONS, descendants, end, handles, name_of
from tests.spark.sink.sink_work import HANG_S, committed_pairs
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.restarting_server import RestartingServer

from ottla import Admin, Producer
from ottla.spark.sink.protocol import driver_id
from ottla.spark.tables.iceberg import load_catalog
from ottla.testing import Broker

PROGRAM = Path(__file__).with_name("company.py")
TWO_PHASE = {"transaction.two.phase.commit.enable": "true"}
COMPANY_S = float(os.environ.get("OTTLA_COMPANY_S", "60"))
KILLS = 5
RECORDS = 50
ICEBERG = "iceberg"
ICEBERG_TABLE = "shop.results"
FLOW = """
@dp.append_flow(target="{name}")
def to_{name}():
    return spark.readStream.table("input").selectExpr("key", "concat('r', cast(value as string)) as value")
"""


class Company:
    """Five queries in a process of their own, and what they are to have written."""

    exactly_once: tuple[str, ...] = EXACTLY_ONCE

    def __init__(self, bootstrap: str, folder: Path, two_phase: str) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._two_phase = two_phase
        self._process: subprocess.Popen[Any] | None = None
        self._left: list[int] = []
        self.sent = 0
        with Admin(bootstrap) as admin:
            admin.create_topics(dict.fromkeys(("input", *self.exactly_once, AT_LEAST_ONCE), PARTITIONS)).raise_first()
        self.start()

    def __enter__(self) -> Company:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
        end(self._left)

    def command(self) -> list[str]:
        return [sys.executable, str(PROGRAM), self._bootstrap, str(self._folder), self._two_phase]

    def checkpoint(self, name: str) -> Path:
        return self._folder / "checkpoints" / name

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), env=environment, stdout=log, stderr=subprocess.STDOUT)

    def ensure_running(self) -> None:
        """Start it again if it has ended, as an operator would. The program of this class does not end by itself."""

    def stop(self) -> None:
        (self._folder / "stop").touch()
        assert self._process is not None
        self._process.wait(HANG_S)

    def kill(self, is_alone: bool = False) -> None:
        """Kill the driver with its JVM and its Python processes. Alone: these go on until they see that it is gone."""
        assert self._process is not None
        if self._process.poll() is not None:
            return
        family = descendants(self._process.pid)
        if is_alone:
            self._left += handles(family)
            family = set()
        for each in (self._process.pid, *sorted(family, key=lambda pid: "java" not in name_of(pid))):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._process.wait(HANG_S)

    def kill_a_python_process(self, random: Random) -> None:
        """Kill one of Spark's Python processes: a task's, or one that plans or commits."""
        assert self._process is not None
        found = sorted(pid for pid in descendants(self._process.pid) if "python" in name_of(pid))
        if found:
            with suppress(ProcessLookupError):
                os.kill(random.choice(found), signal.SIGKILL)

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
        for topic in (*self.exactly_once, AT_LEAST_ONCE):
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

    def fences_reopened(self) -> dict[str, int]:
        """By exactly-once query, if nothing was killed: how often its commits came to a process without the newest fence.

        The epoch of the driver's transactional id rises with each fence, and with both transactions of each batch.
        """
        found = {}
        for name in self.exactly_once:
            checkpoint = self.checkpoint(name)
            query = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"]
            batches = 1 + max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdecimal())
            with Admin(self._bootstrap) as admin:
                epoch = admin.describe_transactions([driver_id(query)])[driver_id(query)].producer_epoch
            found[name] = epoch - 2 * batches
        return found

    def await_results(self) -> dict[str, Counter[int]]:
        """Wait until every sink has every result; returns how often."""
        expected = set(range(self.sent))
        deadline_s = time.monotonic() + 2 * HANG_S
        found = self.written()
        while any(set(counts) != expected for counts in found.values()):
            assert time.monotonic() < deadline_s, f"{ {name: len(each) for name, each in found.items()} }; {self.failures}"
            time.sleep(0.5)  # Spark tells nobody outside of its process when a batch ends
            self.ensure_running()
            found = self.written()
        return found

    def check(self, is_killed: bool) -> None:
        """Every sink has every result; those that promise it have each once."""
        found = self.await_results()
        doubled = {name: [n for n, count in counts.items() if count > 1] for name, counts in found.items()}
        if is_killed:
            doubled.pop(AT_LEAST_ONCE)
        assert not any(doubled.values()), doubled


class PipelineCompany(Company):
    """Five flows of `ottla pipeline run --schedule`, into two exactly-once topics, a plain topic, Delta and Iceberg."""

    exactly_once = EXACTLY_ONCE[:2]

    def __init__(self, bootstrap: str, folder: Path, two_phase: str) -> None:
        self._home = folder / "pipeline"
        self._exits: list[int] = []
        iceberg = self._iceberg_options = {
            "catalog.type": "sql",
            "catalog.uri": f"sqlite:///{folder}/catalog.db",
            "catalog.warehouse": f"file://{folder}/warehouse",
        }
        sinks: dict[str, dict[str, str]] = {name: {"topic": name, "exactlyOnce": "true"} for name in self.exactly_once}
        sinks |= {each: sinks[each] | {"twoPhaseCommit": two_phase} for each in self.exactly_once}
        sinks[AT_LEAST_ONCE] = {"topic": AT_LEAST_ONCE}
        sinks[DELTA] = {"format": "ottla_delta", "path": str(folder / DELTA)}
        sinks[ICEBERG] = {"format": "ottla_iceberg", "table": ICEBERG_TABLE, **iceberg}
        connections = {
            "sources": {"input": {"subscribe": "input", "startingOffsets": "earliest"}},
            "sinks": {name.replace("-", "_"): options for name, options in sinks.items()},
        }
        flows = "".join(FLOW.format(name=name.replace("-", "_")) for name in sinks)
        write_pipeline(self._home, {"flows.py": flows}, json.dumps(connections), bootstrap)
        super().__init__(bootstrap, folder, two_phase)

    def command(self) -> list[str]:
        return [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(self._home), "--schedule", "every 5s"]

    def checkpoint(self, name: str) -> Path:
        return self._home / "storage" / "ottla" / "checkpoints" / f"to_{name.replace('-', '_')}"

    def ensure_running(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            self._exits.append(self._process.returncode)
            self.start()

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(HANG_S) == 0, self.failures

    @property
    def failures(self) -> str:
        assert self._process is not None
        if self._process.poll() is None:
            return f"ended with {self._exits}" if self._exits else ""
        said = (self._folder / "log").read_text(encoding="utf-8")[-3000:]
        return f"ended with {self._process.returncode}, and before that with {self._exits}: {said}"

    def written(self) -> dict[str, Counter[int]]:
        return super().written() | {ICEBERG: self._in_iceberg()}

    def _in_iceberg(self) -> Counter[int]:
        from pyiceberg.exceptions import NoSuchTableError

        options = {name.removeprefix("catalog."): value for name, value in self._iceberg_options.items()}
        try:
            rows = load_catalog("default", options).load_table(ICEBERG_TABLE).scan().to_arrow()
        except NoSuchTableError:
            return Counter()
        return Counter(int(str(value).removeprefix("r")) for value in rows["value"].to_pylist())


def run_quietly(company: Company) -> None:
    """Nothing is killed: no query may end. But one that cannot start on a busy machine is started again, as in company.py."""
    company.feed()
    company.await_results()
    before = company.failures
    deadline_s = time.monotonic() + COMPANY_S
    while time.monotonic() < deadline_s:
        company.feed()
        time.sleep(0.3)
        assert company.failures == before
    company.check(is_killed=False)
    assert company.failures == before
    company.stop()
    moved = company.fences_reopened()
    print(f"{company.sent} rows in each of five sinks; fences opened again: {moved}")
    assert all(moved.values()), f"Spark has moved no commit to another process: {moved}"


def run_with_kills(company: Company, seed: int, more: Callable[[], None] | None = None) -> None:
    random = Random(seed)
    for number in range(KILLS * 3):
        company.feed()
        if number % 3 == 0:
            company.await_results()  # else a busy machine would start Spark all the time, and nothing else would be killed
        time.sleep(random.uniform(2, 8))
        company.feed()
        company.ensure_running()
        if number % 3 == 0:
            company.kill(is_alone=number % 2 == 1)
            company.start()
        elif number % 3 == 1 or more is None:
            company.kill_a_python_process(random)
        else:
            more()
    company.check(is_killed=True)
    company.stop()
    print(f"{company.sent} rows in each of five sinks after {KILLS * 3} kills")


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("two_phase", ["false", "auto"])
def test_five_queries_in_one_session(two_phase: str, tmp_path: Path) -> None:
    with Broker(TWO_PHASE, process=True) as broker, Company(broker.bootstrap_servers, tmp_path, two_phase) as company:
        run_quietly(company)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_five_queries_in_one_session_on_apache_kafka(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with apache_kafka.start_server() as server, Company(server.bootstrap, tmp_path, "auto") as company:
        run_quietly(company)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("settings", [{}, TWO_PHASE], ids=["", "two-phase"])
def test_five_queries_whose_processes_and_broker_are_killed(settings: dict[str, str], tmp_path: Path) -> None:
    with Broker(settings, process=True) as broker, Company(broker.bootstrap_servers, tmp_path, "auto") as company:

        def restart() -> None:
            broker.kill()
            broker.start()

        run_with_kills(company, 1, restart)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_five_queries_whose_processes_and_broker_are_killed_on_apache_kafka(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with RestartingServer(apache_kafka.start_server) as server, Company(server.bootstrap, tmp_path, "auto") as company:

        def restart() -> None:
            server.kill()
            server.start()

        run_with_kills(company, 2, restart)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("settings", [{}, TWO_PHASE], ids=["", "two-phase"])
def test_five_flows_of_a_scheduled_pipeline(settings: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    with Broker(settings, process=True) as broker, PipelineCompany(broker.bootstrap_servers, tmp_path, "auto") as company:
        run_quietly(company)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_five_flows_whose_processes_and_broker_are_killed(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    with Broker(TWO_PHASE, process=True) as broker, PipelineCompany(broker.bootstrap_servers, tmp_path, "auto") as company:

        def restart() -> None:
            broker.kill()
            broker.start()

        run_with_kills(company, 3, restart)
