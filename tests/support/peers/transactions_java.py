"""Transactional producers that are Kafka's own, in one Java process (TransactionalProducers.java)."""

import subprocess
from collections.abc import Mapping
from itertools import count

from tests.support.peers.transactions import TransactionFailed
from tests.support.servers.apache_kafka import JAVA_SOURCES, ApacheKafka

FENCED = ("ProducerFencedException", "InvalidProducerEpochException")


class JavaTransactions:
    """A producer in the process of `JavaProducers`."""

    def __init__(self, process: "JavaProducers", name: str) -> None:
        self._process = process
        self._name = name

    def init(self) -> None:
        self._process.tell("init", self._name)

    def begin(self) -> None:
        self._process.tell("begin", self._name)

    def send(self, topic: str, partition: int, value: str) -> None:
        self._process.tell("send", self._name, topic, partition, value)

    def send_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        self._process.tell("offsets", self._name, group, topic, partition, offset)

    def commit(self) -> None:
        self._process.tell("commit", self._name)

    def abort(self) -> None:
        self._process.tell("abort", self._name)

    def close(self) -> None:
        self._process.tell("close", self._name)

    def abandon(self) -> None:
        self._process.tell("abandon", self._name)


class JavaProducers:
    """The Java process. It starts with the first producer and ends with `stop`."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._command = [*kafka.jvm(), *kafka.program(JAVA_SOURCES / "TransactionalProducers.java")]
        self._process: subprocess.Popen[str] | None = None
        self._numbers = count(1)

    def open(self, bootstrap: str, transactional_id: str, timeout_ms: int, more: Mapping[str, str]) -> JavaTransactions:
        """A new producer."""
        name = f"producer-{next(self._numbers)}"
        settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "reconnect.backoff.max.ms": 200,
            "linger.ms": 0,
        } | dict(more)
        self.tell("open", name, *(f"{key}={value}" for key, value in settings.items()))
        return JavaTransactions(self, name)

    def tell(self, *words: object) -> None:
        """Run one command to its end; `TransactionFailed` if it failed."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n").split("\t")
        assert answer[0] in ("ok", "failed"), f"{words}: the Java process has ended"
        if answer[0] == "failed":
            raise TransactionFailed(f"{answer[1]}: {answer[2]}", fenced=answer[1] in FENCED)

    def stop(self) -> None:
        """End the process with all producers."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
