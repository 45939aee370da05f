"""`make bench-console`: pages of a large cluster, searches, live tails and memory of the console.

    python -m bench.console [--quick] [--save]

One Ottla broker and the console run in processes of their own. `--quick` takes a tenth of topics, groups and records;
`--save` writes the table into docs/console.md.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from bench.clients.broker import BenchBroker
from bench.readme import with_block
from bench.report import ROOT

from ottla import Consumer, Producer
from ottla.client.admin.group_offsets import alter_consumer_group_offsets
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster import open_cluster
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
PAGE = ROOT / "docs" / "console.md"
AT_ONCE = 50
TOPICS_PER_REQUEST = 500
ROUNDS = 15
FIRST_S_MAX = 60.0
TAILED = 300
RECORD_BYTES = 1_000


class Row(NamedTuple):
    """A measured figure, and what it should be."""

    what: str
    figure: str
    goal: str
    is_met: bool | None


class NotYet(Exception):
    """A page that is not there."""


class ConsoleProcess:
    """`ottla console` on a free port."""

    def __init__(self, bootstrap: str) -> None:
        command = [sys.executable, "-m", "ottla", "console", "-b", bootstrap, "--port", "0", "--json"]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout is not None
        self.url = str(json.loads(self.child.stdout.readline())["url"])

    def __enter__(self) -> ConsoleProcess:
        return self

    def __exit__(self, *failure: object) -> None:
        self.child.terminate()
        self.child.wait(20)

    def get(self, path: str) -> tuple[float, float, int]:
        """Seconds to the first byte and to the last, and the size."""
        connection = self._connection()
        began_s = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        first_s = time.perf_counter() - began_s
        size = len(answer.read())
        whole_s = time.perf_counter() - began_s
        connection.close()
        if answer.status != 200:
            raise NotYet(f"{path}: {answer.status}")
        return first_s, whole_s, size

    def first(self, path: str) -> float:
        """Seconds until the page was there for the first time: loaded again while it said that the cluster has not answered."""
        began_s = time.perf_counter()
        while True:
            try:
                self.get(path)
                return time.perf_counter() - began_s
            except NotYet:
                if time.perf_counter() - began_s > FIRST_S_MAX:
                    raise

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        connection = self._connection()
        connection.request("GET", path)
        name = ""
        for line in connection.getresponse():
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                yield name, json.loads(value)
        connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        return http.client.HTTPConnection(str(address.hostname), address.port, timeout=300)

    def memory_mb(self, field: str = "VmRSS") -> float | None:
        """Resident memory; None where the system does not say."""
        try:
            lines = Path(f"/proc/{self.child.pid}/status").read_text().splitlines()
        except OSError:
            return None
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":"))


async def fill(bootstrap: str, topics: int, groups: int) -> None:
    """Topics of one partition, and groups with a committed offset each."""
    cluster = open_cluster(real_client_world(), admin_settings(bootstrap, None, {}), "bench")
    try:
        for begin in range(0, topics, TOPICS_PER_REQUEST):
            some = [NewTopic(f"topic-{number:05}", 1, 1) for number in range(begin, min(topics, begin + TOPICS_PER_REQUEST))]
            (await create_topics(cluster, some)).raise_first()
        gate = asyncio.Semaphore(AT_ONCE)

        async def commit(number: int) -> None:
            async with gate:
                await alter_consumer_group_offsets(cluster, f"group-{number:05}", {(f"topic-{number % topics:05}", 0): 0})

        await asyncio.gather(*(commit(number) for number in range(groups)))
    finally:
        cluster.close()


def pages(console: ConsoleProcess) -> list[Row]:
    """First byte and whole page: the first time, and the slowest of those after it."""
    rows = []
    for path in ("/topics", "/topics?order=-size", "/groups", "/", "/topics/topic-00007", "/topics/topic-00007/records"):
        cold_s = console.first(path)
        warm = []
        silent = 0
        for _ in range(ROUNDS):
            try:
                warm.append(console.get(path))
            except NotYet:
                silent += 1
            time.sleep(0.2)
        if not warm:
            rows.append(Row(path, "the cluster never answered in time", "0.3 s, 1 s", False))
            continue
        first, whole = statistics.median(each[0] for each in warm), statistics.median(each[1] for each in warm)
        worst = max(each[1] for each in warm)
        rows.append(
            Row(
                f"{path}: first byte, whole page (slowest, first time)",
                f"{first:.3f} s, {whole:.3f} s ({worst:.3f} s, {cold_s:.3f} s)"
                + (f", {silent} of {ROUNDS} without an answer of the cluster" if silent else ""),
                "0.3 s, 1 s",
                first <= 0.3 and worst <= 1 and not silent,
            )
        )
    return rows


def produce(bootstrap: str, topic: str, count: int) -> int:
    """Records of JSON, 1 KB each; their bytes."""
    filler = "x" * (RECORD_BYTES - 60)
    size = 0
    with Producer(bootstrap) as producer:
        for begin in range(0, count, 10_000):
            values = [
                json.dumps({"order": f"o-{number}", "total": number % 1000, "text": filler}).encode()
                for number in range(begin, min(count, begin + 10_000))
            ]
            size += sum(map(len, values))
            producer.send_many(topic, values)
            producer.flush()
    return size


def consumer_rate(bootstrap: str, topic: str, count: int) -> float:
    """What the client reads, in MB/s: without decoding JSON."""
    with Consumer(bootstrap, group_id="bench-rate", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        got = size = 0
        began_s = time.perf_counter()
        while got < count:
            records = consumer.poll(timeout=30)
            got += len(records)
            size += sum(len(each.value) for each in records)
        return size / (time.perf_counter() - began_s) / 1e6


def search(console: ConsoleProcess, topic: str, expression: str, size: int, place: str) -> float:
    """MB/s of a search through the whole topic."""
    query = urlencode({"q": expression, "from": place, "limit": 5_000})
    began_s = time.perf_counter()
    last = {}
    for name, data in console.events(f"/api/topics/{topic}/records/search?{query}"):
        if name == "failure":
            raise SystemExit(data["text"])
        if name == "progress":
            last = data
    took_s = time.perf_counter() - began_s
    if last.get("records") != last.get("of"):
        raise SystemExit(f"the search ended early: {last}")
    return size / took_s / 1e6


def tail_ms(console: ConsoleProcess, bootstrap: str, topic: str) -> list[float]:
    """From a send to the browser, record by record."""
    found: list[float] = []
    arrived = threading.Event()
    ready = threading.Event()

    def read() -> None:
        for name, data in console.events(f"/topics/{topic}/records/tail"):
            now_s = time.time()
            if name == "begin":
                ready.set()
            sent = [float(part.split("!")[0]) for part in data.get("html", "").split("at=")[1:]]
            found.extend((now_s - each) * 1e3 for each in sent)
            if found and len(found) >= TAILED:
                arrived.set()
                return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    ready.wait(30)
    with Producer(bootstrap, linger_ms=0) as producer:
        while not arrived.is_set():
            producer.send(topic, f"at={time.time()}!".encode()).result(timeout=30)
            time.sleep(0.027)  # not in step with the pauses of the tail
    return found[:TAILED]


def table(rows: list[Row]) -> str:
    lines = ["| what | figure | goal | |", "|---|---|---|---|"]
    lines += [f"| {each.what} | {each.figure} | {each.goal} | {_verdict(each)} |" for each in rows]
    return "\n".join(lines) + "\n"


def _verdict(row: Row) -> str:
    return "" if row.is_met is None else "met" if row.is_met else "not met"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--save", action="store_true", help="write the table into docs/console.md")
    options = parser.parse_args()
    part = 10 if options.quick else 1
    topics, groups, records = 10_000 // part, 10_000 // part, 1_000_000 // part
    rows: list[Row] = []

    def show(new: list[Row]) -> None:
        rows.extend(new)
        for each in new:
            print(f"{each.what:75} {each.figure:45} goal {each.goal:20} {_verdict(each)}", flush=True)

    with BenchBroker() as broker:
        began_s = time.perf_counter()
        asyncio.run(fill(broker.bootstrap, topics, groups))
        print(f"{topics:,} topics, {groups:,} groups: made in {time.perf_counter() - began_s:.0f} s", flush=True)
        with ConsoleProcess(broker.bootstrap) as console:
            began_s, used_s = time.perf_counter(), broker.cpu_s()
            show(pages(console))
            share = (broker.cpu_s() - used_s) / (time.perf_counter() - began_s)
            show([Row("processor time of the broker while somebody loads pages", f"{share:.0%} of a core", "", None)])
            resident = console.memory_mb()
            if resident is not None:
                show(
                    [
                        Row(
                            f"memory after {topics:,} topics and {groups:,} groups",
                            f"{resident:.0f} MB",
                            "150 MB",
                            resident <= 150,
                        )
                    ]
                )
    with BenchBroker() as broker:
        topic = broker.create_topic(1)
        size = produce(broker.bootstrap, topic, records)
        own = consumer_rate(broker.bootstrap, topic, records)
        show([Row("the client's own rate: a Consumer that reads the topic", f"{own:.0f} MB/s", "", None)])
        with ConsoleProcess(broker.bootstrap) as console:
            for what, expression, place in (
                ("a text that is not there", '"needle"', "oldest"),
                ("the same from the end", '"needle"', "newest"),
                ("one order by its id", f'value.order == "o-{records // 2}"', "oldest"),
                ("a number in every record", "value.total < 0", "oldest"),
                ("a regular expression", 'value matches "order-[0-9]+z"', "oldest"),
            ):
                rate = search(console, topic, expression, size, place)
                show([Row(f"search, {what}: `{expression}`", f"{rate:.0f} MB/s", "300 MB/s", rate >= min(300, own))])
            tailed = broker.create_topic(1)
            took = sorted(tail_ms(console, broker.bootstrap, tailed))
            middle, high = took[len(took) // 2], took[int(len(took) * 0.99)]
            show(
                [Row("live tail, from send to browser: p50, p99", f"{middle:.0f} ms, {high:.0f} ms", "p99 150 ms", high <= 150)]
            )
            most = console.memory_mb("VmHWM")
            if most is not None:
                show([Row("memory, the most while it searched", f"{most:.0f} MB", "150 MB", most <= 150)])
    if options.save:
        PAGE.write_text(with_block(PAGE, table(rows), BEGIN, END), encoding="utf-8")


if __name__ == "__main__":
    main()
