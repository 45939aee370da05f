"""The demo on Spark: a shop's hour streams through a pipeline that is killed on the way; nothing is lost or doubled.

A node and `ottla pipeline run` are processes of their own, as a user would start them. The hour of `shop.py` is sent within
half a minute. On the way the pipeline is killed with -9 and started again, and so is the node. At the end a read_committed
reader has seen every result once, or the demo fails.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

import click
from tools.demo.processes import DemoFailed, Node, Process
from tools.demo.report import Found, bars, differences, draw_png
from tools.demo.shop import MINUTES, TOPICS, Event, Shop, closing_events

from ottla import Admin, Consumer, Producer

PIPELINE = Path(__file__).with_name("pipeline")
RESULTS = ("paid_orders", "revenue", "popular_pages")
SENDING_S = 30.0
FIRST_SHARE = 0.15
"""How much is sent at once; the rest follows when the first results are there."""
KILL_PIPELINE_AT = 0.45
KILL_NODE_AT = 0.75
DONE_WITHIN_S = 300.0
TURN_S = 0.2
SAY_EVERY_S = 5.0


@dataclass
class Timeline:
    """What happened when, in seconds."""

    began_s: float = field(default_factory=monotonic)
    progress: list[tuple[float, int, int]] = field(default_factory=list)
    """(second, orders sent, paid orders seen)."""
    kills_s: list[float] = field(default_factory=list)

    def now_s(self) -> float:
        return monotonic() - self.began_s


class SparkDemo:
    """The steps, in order."""

    def __init__(self, folder: Path, png: Path) -> None:
        self._folder = folder
        self._png = png
        self._node = Node(folder / "data", folder / "node.log")
        pipeline = folder / "shop"
        shutil.copytree(PIPELINE, pipeline, ignore=shutil.ignore_patterns("__pycache__"))
        arguments = ["pipeline", "run", str(pipeline), "--bootstrap-server", self._node.address]
        self._pipeline = Process(arguments, folder / "pipeline.log")
        self._shop = Shop.open()
        self._found = Found()
        self._time = Timeline()
        self._said_s = 0.0
        self._orders_sent = 0
        self._sent = 0

    def run(self) -> None:
        with ExitStack() as stack:
            stack.callback(self._node.stop)
            stack.callback(self._pipeline.stop)
            say("1. A node, six topics, and a pipeline on Spark: a join, windows, exactly-once results")
            self._start()
            say(f"2. {MINUTES} minutes of a shop in {SENDING_S:.0f} seconds: {len(self._shop.events):,} events")
            sender: Producer[bytes, bytes] = Producer(self._node.address, linger_ms=20)
            with sender as producer, self._reader() as consumer:
                self._stream(producer, consumer)
                say("3. Until every result is there, once")
                self._await_all(consumer)
                self._pipeline.stop()
                self._read(consumer, 2.0)  # what a doubled result would still show up in
            self._check()
            say("4. What the shop has earned")
            self._report()

    def _start(self) -> None:
        began_s = monotonic()
        self._node.start_and_wait()
        click.echo(f"   $ ottla up                     # at {self._node.address} after {monotonic() - began_s:.1f} s")
        with Admin(self._node.address) as admin:
            admin.create_topics(dict.fromkeys((*TOPICS, *RESULTS), 2)).raise_first()
        click.echo("   $ ottla pipeline run shop      # Spark takes some seconds to start")
        self._pipeline.start()

    def _reader(self) -> Consumer[bytes, bytes]:
        consumer: Consumer[bytes, bytes] = Consumer(
            self._node.address, isolation_level="read_committed", auto_offset_reset="earliest", enable_auto_commit=False
        )
        consumer.assign(*[(topic, partition) for topic in ("paid_orders", "revenue") for partition in range(2)])
        return consumer

    def _stream(self, producer: Producer[bytes, bytes], consumer: Consumer[bytes, bytes]) -> None:
        steps = {KILL_PIPELINE_AT: self._kill_pipeline, KILL_NODE_AT: self._kill_node}
        for share, part in _by_time(self._shop.events):
            self._send(producer, part)
            self._orders_sent += sum(event.topic == "orders" for event in part)
            self._sent += len(part)
            if share < FIRST_SHARE:
                continue
            if not self._found.paid:
                self._await_first(consumer)
                self._time = Timeline(monotonic() - share * SENDING_S)
            self._read(consumer, max(0.0, share * SENDING_S - self._time.now_s()))
            for due in [each for each in steps if share >= each]:
                steps.pop(due)()
        self._send(producer, closing_events())
        producer.flush()

    def _send(self, producer: Producer[bytes, bytes], events: list[Event]) -> None:
        for event in events:
            producer.send(event.topic, event.value.encode(), event.key.encode())

    def _await_first(self, consumer: Consumer[bytes, bytes]) -> None:
        """Wait until Spark has started and the first minutes are through: a kill before that would prove nothing."""
        deadline_s = monotonic() + DONE_WITHIN_S
        while not self._found.paid:
            self._read(consumer, TURN_S)
            if monotonic() > deadline_s:
                raise DemoFailed(f"the pipeline gave no result within {DONE_WITHIN_S:.0f} s: {self._pipeline.last_lines()}")

    def _kill_pipeline(self) -> None:
        self._line("$ kill -9 the pipeline, Spark and all; and start it again")
        self._time.kills_s.append(self._time.now_s())
        self._pipeline.kill()
        self._pipeline.start()

    def _kill_node(self) -> None:
        self._line("$ kill -9 the node; and start it again")
        self._time.kills_s.append(self._time.now_s())
        self._node.kill()
        self._node.start_and_wait()

    def _await_all(self, consumer: Consumer[bytes, bytes]) -> None:
        deadline_s = monotonic() + DONE_WITHIN_S
        while differences(self._shop, self._found):
            self._read(consumer, TURN_S)
            if monotonic() > deadline_s:
                raise DemoFailed(f"results are not complete after {DONE_WITHIN_S:.0f} s: {self._problems()}")

    def _read(self, consumer: Consumer[bytes, bytes], for_s: float) -> None:
        """Take results for some time, and show how far it has come."""
        until_s = monotonic() + for_s
        while True:
            for record in consumer.poll(max(0.0, min(TURN_S, until_s - monotonic()))):
                value = json.loads(record.value or b"{}")
                if record.topic == "paid_orders":
                    self._found.add_paid(value)
                else:
                    self._found.add_revenue(value)
            self._show()
            self._pipeline.check()
            self._node.check()
            if monotonic() >= until_s:
                return

    def _show(self) -> None:
        paid, now_s = self._found.paid.total(), self._time.now_s()
        self._time.progress.append((now_s, self._orders_sent, paid))
        text = (
            f"{now_s:4.0f} s   sent {self._sent:,} of {len(self._shop.events):,}   paid orders {paid:,} of "
            f"{len(self._shop.paid):,}   windows {self._found.revenue.total()} of {len(self._shop.revenue)}"
        )
        if sys.stdout.isatty():
            click.echo(f"\r\x1b[K   {text}", nl=False)
        elif now_s - self._said_s >= SAY_EVERY_S or now_s < self._said_s:
            self._said_s = now_s
            click.echo(f"   {text}")

    def _line(self, text: str) -> None:
        lead = "\r\x1b[K" if sys.stdout.isatty() else ""
        click.echo(f"{lead}   {text}")

    def _problems(self) -> str:
        return "; ".join(differences(self._shop, self._found))

    def _check(self) -> None:
        problems = self._problems()
        if problems:
            raise DemoFailed(f"{problems}: please report this")
        deadline_s = monotonic() + DONE_WITHIN_S
        with Admin(self._node.address) as admin:
            while left := admin.list_transactions(states=["Ongoing"]):
                if monotonic() > deadline_s:
                    raise DemoFailed(f"{len(left)} transactions are still open: please report this")
                sleep(TURN_S)
        self._line(
            f"{len(self._shop.paid):,} paid orders and {len(self._shop.revenue)} windows are there, each exactly once, "
            "through two kills; no transaction is open"
        )

    def _report(self) -> None:
        for line in bars(self._shop.revenue):
            click.echo(f"   {line}")
        draw_png(self._png, self._shop.revenue, self._time.progress, self._time.kills_s)
        click.echo(f"\n   The same as a picture, with the kills: {self._png}")
        click.echo(
            "\nTry next:\n"
            "   .venv/bin/ottla up                          # a node of your own, on 127.0.0.1:9092\n"
            "   .venv/bin/ottla pipeline init orders        # a pipeline to begin with, and its test\n"
            "   .venv/bin/ottla pipeline test orders\n"
            "   docs/pipelines.md                           # from zero to a pipeline"
        )


def _by_time(events: list[Event], parts: int = 150) -> Iterator[tuple[float, list[Event]]]:
    """Parts of the events in order, each with the share of the hour that is over after it."""
    step_s = MINUTES * 60 * 1.2 / parts  # payments come up to ten minutes after the hour
    begin = 0
    for number in range(1, parts + 1):
        end = begin
        while end < len(events) and events[end].at_s < number * step_s:
            end += 1
        yield number / parts, events[begin:end]
        begin = end


def say(step: str) -> None:
    click.echo(f"\n{step}")
