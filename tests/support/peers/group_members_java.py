"""Members of groups that are Kafka's own Java consumers: one Java process for all of a session (GroupMembers.java)."""

import subprocess
import threading

from tests.support.peers.group_members import HEARTBEAT_MS, Member, MemberOptions, Partition, Taken
from tests.support.servers.apache_kafka import JAVA_SOURCES, ApacheKafka

STRATEGIES = {
    "eager": "org.apache.kafka.clients.consumer.RangeAssignor",
    "cooperative": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class JavaMember(Member):
    """A consumer in the process of `JavaMembers`."""

    def __init__(self, name: str, process: "JavaMembers") -> None:
        super().__init__(name)
        self._process = process

    def begin_close(self) -> None:
        self._process.tell("close", self.name)

    def abandon(self) -> None:
        self._process.tell("abandon", self.name)
        assert self.ended.wait(30), f"{self.name} was still ending after 30 s"


class JavaMembers:
    """The Java process. It starts with the first member and ends with `stop`."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._command = [*kafka.jvm(), *kafka.program(JAVA_SOURCES / "GroupMembers.java")]
        self._process: subprocess.Popen[str] | None = None
        self._members: dict[str, JavaMember] = {}

    def open(self, name: str, bootstrap: str, options: MemberOptions) -> JavaMember:
        """A new consumer."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
            threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        member = self._members[name] = JavaMember(name, self)
        topics = f"~{options.pattern}" if options.pattern else ",".join(options.topics)
        self.tell("open", name, topics, *(f"{key}={value}" for key, value in settings(bootstrap, options).items()))
        return member

    def tell(self, *words: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            name, what, *rest = line.rstrip("\n").split("\t")
            member = self._members[name]
            if what == "record":
                topic, partition, offset, value = rest
                member.records.append(Taken((topic, int(partition)), int(offset), value))
            elif what == "closed":
                member.ended.set()
            elif what == "failed":
                member.fail(rest[0])
            else:
                member.note(what, map(_partition, rest))

    def stop(self) -> None:
        """End the process with all members that are left."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def settings(bootstrap: str, options: MemberOptions) -> dict[str, str]:
    """The consumer's settings."""
    chosen = {
        "bootstrap.servers": bootstrap,
        "group.id": options.group,
        "auto.offset.reset": "earliest",
        "metadata.max.age.ms": "1000",
        "reconnect.backoff.max.ms": "200",
    }
    if options.protocol == "consumer":
        chosen["group.protocol"] = "consumer"
    else:
        chosen["partition.assignment.strategy"] = STRATEGIES[options.protocol]
        chosen["session.timeout.ms"] = str(options.session_ms)
        chosen["heartbeat.interval.ms"] = str(HEARTBEAT_MS)
    if options.instance_id:
        chosen["group.instance.id"] = options.instance_id
    return chosen | options.more


def _partition(text: str) -> Partition:
    topic, _, index = text.rpartition("-")
    return topic, int(index)
