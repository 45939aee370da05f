"""An Ottla voter among Apache Kafka's controllers: elections each way, equal logs, and what Kafka's own tool says."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from tests.support.nodes.quorum_server import CLUSTER_ID, QuorumServer, until
from tests.support.servers.apache_kafka import ApacheKafka, ToolFailed
from tests.support.servers.kafka_server import (
    LOG_LEVELS,
    QUICK_JVM_FLAGS,
    KafkaServer,
    default_properties,
    free_ports,
    properties_text,
)

from ottla.env import World
from ottla.env.real.world import real_world

pytestmark = pytest.mark.slow
OTTLA = 3


class MixedQuorum:
    """Voters 1 and 2 are Apache's, voter 3 is Ottla's."""

    def __init__(self, kafka: ApacheKafka, world: World, folder: Path) -> None:
        self.kafka = kafka
        self.folder = folder
        self.ports = dict(enumerate(free_ports(3), start=1))
        self.voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in self.ports.items())
        self.apache: dict[int, KafkaServer] = {}
        settings = {"controller.quorum.voters": self.voters}
        self.ottla = QuorumServer(world, str(folder / str(OTTLA)), OTTLA, self.ports[OTTLA], settings)

    def properties(self, node: int) -> dict[str, object]:
        settings = default_properties(self.folder / str(node), 0, self.ports[node])
        del settings["controller.quorum.bootstrap.servers"]
        listener = f"CONTROLLER://127.0.0.1:{self.ports[node]}"
        return settings | {
            "node.id": node,
            "process.roles": "controller",
            "listeners": listener,
            "controller.quorum.voters": self.voters,
        }

    async def format(self) -> None:
        for node in (1, 2):
            config = self.folder / f"{node}.properties"
            config.write_text(properties_text(self.properties(node)))
            await asyncio.to_thread(self.kafka.run_tool, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config)
        await self.ottla.format()

    async def start(self, node: int) -> None:
        if node == OTTLA:
            await self.ottla.start()
            return
        command = [*self.kafka.jvm(QUICK_JVM_FLAGS), *LOG_LEVELS, "-cp", self.kafka.server_classpath, "kafka.Kafka"]
        server = KafkaServer(command, self.properties(node), self.folder / str(node), name=f"Apache Kafka (node {node})")
        self.apache[node] = server
        await asyncio.to_thread(server.start)

    def kill(self, node: int) -> None:
        if node == OTTLA:
            self.ottla.kill()
        else:
            self.apache.pop(node).kill()

    async def apache_leads(self) -> None:
        """Wait until one of Apache's controllers leads.

        Ottla's replica, which is no controller here, asks for pre-votes when it starts, and would win before they look.
        """
        while True:
            with contextlib.suppress(ToolFailed):  # there is no leader, or it has not written the first records
                if int((await self.quorum_status(1))["LeaderId"]) in (1, 2):
                    return

    async def quorum_status(self, node: int) -> dict[str, str]:
        """What `kafka-metadata-quorum describe --status` prints, asked at `node`."""
        server = f"127.0.0.1:{self.ports[node]}"
        tool = "org.apache.kafka.tools.MetadataQuorumCommand"
        result = await asyncio.to_thread(self.kafka.run_tool, tool, "--bootstrap-controller", server, "describe", "--status")
        return dict(line.split(":", 1) for line in result.stdout.splitlines() if ":" in line)

    def close(self) -> None:
        for server in self.apache.values():
            server.kill()
        if self.ottla.is_up:
            self.ottla.kill()


def test_ottla_votes_among_apache_controllers(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    async def run(quorum: MixedQuorum) -> None:
        await quorum.format()
        await asyncio.gather(quorum.start(1), quorum.start(2))
        await quorum.apache_leads()
        await quorum.start(OTTLA)
        led: list[int] = []
        for _ in range(4):
            await until(lambda: quorum.ottla.quorum.leader_id > 0, "the quorum has a leader")
            replica = quorum.ottla.quorum.replica
            await until(lambda replica=replica: replica.high_watermark is not None, "something is committed")
            leader, epoch = quorum.ottla.quorum.leader_id, quorum.ottla.quorum.epoch
            led.append(leader)
            if leader != OTTLA:
                status = await quorum.quorum_status(leader)
                assert int(status["LeaderId"]) == leader
                assert int(status["LeaderEpoch"]) == epoch
            quorum.kill(leader)
            if leader != OTTLA:
                await until(lambda epoch=epoch: quorum.ottla.quorum.epoch > epoch, "another epoch")
                await until(lambda: quorum.ottla.quorum.leader_id > 0, "another leader")
            else:
                await quorum.apache_leads()
            await quorum.start(leader)
        print("leaders", led, "epoch", quorum.ottla.quorum.epoch)
        await until(lambda: quorum.ottla.quorum.leader_id > 0, "a last leader")
        quorum.close()
        logs = [quorum.folder / str(node) / "__cluster_metadata-0/00000000000000000000.log" for node in (1, 2, OTTLA)]
        contents = [log.read_bytes() for log in logs]
        shortest = min(map(len, contents))
        assert shortest > 500
        assert len({content[:shortest] for content in contents}) == 1, "the logs are equal byte for byte"
        dump = apache_kafka.dump_log_segments([logs[-1]], "--cluster-metadata-decoder", deep=False)
        assert dump is not None

    with real_world() as world:
        quorum = MixedQuorum(apache_kafka, world, tmp_path)
        try:
            asyncio.run(run(quorum))
        finally:
            for server in quorum.apache.values():
                server.kill()
