"""A node under attack: a separate process with an unlimited log and measured memory, which must keep serving.

    with HostileNode() as node:
        ... attack node.port ...
        node.must_serve()

Leaving the block checks three more things: the node is alive, its memory has grown by at most `growth_bytes_max`, and its log
has no traceback. The limit on log lines is off, so that a traceback cannot be among the lines left out.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pytest
from tests.support.hostile.hostile_client import HostileClient
from tests.support.logs.batches import make_batch, values_of
from tests.support.peers.topics import describe_topic, make_topic
from tests.support.servers.ottla_server import TALKATIVE

from ottla.cli.common.references import is_secret
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
PROBE_TOPIC = "probe-of-the-hostile"
GROWTH_BYTES_MAX = 150_000_000
IDLE_S_MAX = 120


class HostileNode:
    """One node, on a free port, with data in a temporary folder unless `data` is given."""

    def __init__(
        self,
        data: Path | None = None,
        settings: Sequence[str] = (),
        growth_bytes_max: int = GROWTH_BYTES_MAX,
        command_prefix: Sequence[str] = (),
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ottla-hostile-")
        self.data = data or Path(self._folder.name) / "data"
        self.log_path = Path(self._folder.name) / "node.log"
        self._growth_bytes_max = growth_bytes_max
        flags, environment = list(settings), dict(os.environ)
        for place, flag in enumerate(flags):
            name, _, value = flag.removeprefix("--set=").partition("=")
            if is_secret(name):  # refused on a command line
                environment[f"SECRET_{place}"] = value
                flags[place] = f"--set={name}=${{env:SECRET_{place}}}"
        arguments = ["up", "--port", "0", "--data", str(self.data), "--json", *flags]
        self._process = subprocess.Popen(
            [*command_prefix, *TALKATIVE, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log_path.open("wb"),
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait(30)
            raise AssertionError(f"the node did not start: {self.log}")
        self.bootstrap = str(json.loads(line)["bootstrap_servers"]).split(",")[0]
        self.port = int(self.bootstrap.rpartition(":")[2])
        self.must_serve()
        self.memory_bytes_before = self.memory_bytes

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """The node's output so far, in its own log and on the terminal."""
        texts = [self.log_path.read_text(errors="replace")]
        texts += [path.read_text(errors="replace") for path in sorted((self.data / "logs").glob("*.log"))]
        return "\n".join(texts)

    @property
    def memory_bytes(self) -> int:
        """The resident memory of the process."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_s(self) -> float:
        """How much processor time the process has used. Unlike a clock, it does not count what else the machine does."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory_bytes_peak(self) -> int:
        """The peak resident memory of the process."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def await_idle(self) -> None:
        """Wait until the node has done what was sent to it, also by clients that have gone."""
        until_s = time.monotonic() + IDLE_S_MAX
        while time.monotonic() < until_s:
            before_s = self._ready_s
            time.sleep(0.3)  # the time in which an idle node uses almost no CPU
            if self._ready_s - before_s < 0.01:
                return
        raise AssertionError(f"the node is still at work after {IDLE_S_MAX} s")

    @property
    def _ready_s(self) -> float:
        """How long its threads have run, or have been ready to run without a core."""
        times = [path.read_text().split() for path in Path(f"/proc/{self.pid}/task").glob("*/schedstat")]
        return sum(int(ran) + int(queued) for ran, queued, _ in times) / 1e9

    def forget_peak(self) -> None:
        """Measure `memory_bytes_peak` from now on."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def connect(self, timeout_s: float = 60) -> HostileClient:
        return HostileClient(self.port, timeout_s=timeout_s)

    def must_serve(self, timeout_s: float = 60) -> None:
        """Check that the node answers Metadata, and that a record can be produced and fetched."""
        assert self.is_alive, f"the node is gone: {self.log[-5000:]}"
        if describe_topic(self.bootstrap, PROBE_TOPIC).error_code:
            make_topic(self.bootstrap, PROBE_TOPIC)
        value = os.urandom(8)
        part = PartitionProduceData(index=0, records=bytes(make_batch(value)))
        produce = ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=PROBE_TOPIC, partition_data=[part])]
        )
        with self.connect(timeout_s) as client:
            assert client.request(MetadataRequest(topics=[]), 9).brokers
            (answer,) = client.request(produce, 9).responses[0].partition_responses
            assert answer.error_code == 0, f"the probe's record was refused: {answer.error_code}, {answer.error_message}"
            wanted = FetchPartition(partition=0, fetch_offset=answer.base_offset, partition_max_bytes=1 << 20)
            fetch = FetchRequest(max_wait_ms=5000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1)
            fetch.topics = [FetchTopic(topic=PROBE_TOPIC, partitions=[wanted])]
            (found,) = client.request(fetch, 11).responses[0].partitions
        assert values_of(bytes(found.records))[:1] == [value]

    def must_be_unharmed(self) -> None:
        """Check that the node is alive, serves, has not grown, and has no traceback in its log."""
        self.must_serve()
        self.await_idle()
        grown = self.memory_bytes - self.memory_bytes_before
        assert grown <= self._growth_bytes_max, f"the node has grown by {grown / 1e6:.0f} MB"
        log = self.log
        at = log.find("Traceback")
        assert at < 0, f"the node logged a traceback: …{log[max(0, at - 1000) : at + 4000]}"

    def stop(self) -> None:
        """Stop it with SIGTERM, and wait until it has ended."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def await_exit(self) -> int:
        """Wait until the node has ended, for example after `send_signal`; returns the exit code."""
        return self._process.wait(60)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def __enter__(self) -> "HostileNode":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None and self.is_alive:
                self.must_be_unharmed()
                self.stop()
                assert self._process.returncode == 0, f"it ended with {self._process.returncode}: {self.log[-3000:]}"
        finally:
            self.kill()
            self._folder.cleanup()
