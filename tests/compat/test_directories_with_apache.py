"""Whole log directories passed between Apache Kafka and Ottla, after a clean shutdown of one and a start of the other."""

import asyncio
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.logs.batches import make_batch
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import QUICK_JVM_FLAGS, KafkaServer

from ottla.config.broker_log import BrokerLogConfig
from ottla.config.topic import LogConfig
from ottla.env.real import RealClock, RealDisk, ThreadWorkers
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.log_directory import DirectoryWorld
from ottla.log.directories.meta_properties import read_meta_properties
from ottla.log.directories.startup import open_all

TOPIC = "a.b-c"
TELL_LOADING = (*QUICK_JVM_FLAGS, "-Dorg.slf4j.simpleLogger.log.kafka.log.LogManager=info")


def start(kafka: ApacheKafka, paths: list[Path]) -> KafkaServer:
    properties = {"log.dirs": ",".join(map(str, paths))}
    return kafka.start_server(properties, data_dir=paths[0], jvm_flags=TELL_LOADING)


def end_offsets(kafka: ApacheKafka, server: KafkaServer) -> dict[str, int]:
    output = kafka.run_tool("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", server.bootstrap, "--topic", TOPIC)
    rows = [line.split(":") for line in output.stdout.splitlines() if line.count(":") == 2]
    return {f"{topic}-{number}": int(offset) for topic, number, offset in rows}


async def append_and_close(paths: list[Path]) -> dict[str, int]:
    """Open the directories as the broker would, append to every partition, close. Returns the log end offsets."""
    with closing(ThreadWorkers(2)) as workers:
        disk = RealDisk(workers)
        log_dirs = tuple(map(str, paths))
        meta = read_meta_properties(disk, log_dirs[0])
        assert meta is not None
        directories = await open_all(
            DirectoryWorld(disk, RealClock(), lambda: Uuid(uuid.uuid4().bytes)),
            BrokerLogConfig(log_dirs=log_dirs, metadata_log_dir=log_dirs[0]),
            lambda _topic: LogConfig(),
            node_id=meta.node_id,
            cluster_id=meta.cluster_id,
        )
        epochs = {directory.found.broker_epoch for directory in directories.directories if directory.found is not None}
        assert len(epochs) == 1, "both directories had a clean shutdown, in the same epoch"
        ends = {}
        for partition, log in directories.logs.items():
            if partition.topic == TOPIC:
                assert log.high_watermark == log.log_end_offset
                log.append_as_leader(make_batch(b"from Ottla", b"too"), leader_epoch=log.latest_epoch or 0)
                log.update_high_watermark(log.log_end_offset)
                ends[str(partition)] = log.log_end_offset
                owner = directories.directory_of(partition)
                assert owner is not None
                assert partition in owner.topic_ids
        await directories.close(broker_epoch=epochs.pop() or 0)
        assert directories.take_losses() == []
        return ends


@pytest.mark.slow
def test_directories_go_back_and_forth(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    with start(apache_kafka, paths) as server:
        apache_kafka.run_tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", server.bootstrap, "--create", "--topic", TOPIC, "--partitions", 4),
        )
    assert all(list(path.glob(f"{TOPIC}-*")) for path in paths), "Apache places partitions by their number, too"
    for round_number in (1, 2):
        ours = asyncio.run(append_and_close(paths))
        assert set(ours) == {str(TopicPartition(TOPIC, number)) for number in range(4)}
        with start(apache_kafka, paths) as server:
            assert end_offsets(apache_kafka, server) == ours == dict.fromkeys(ours, 2 * round_number)
            log = server.log_text()
        assert log.count("since clean shutdown file was found") == 2, log
