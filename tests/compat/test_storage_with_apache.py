"""Formatting and the metadata log, compared with Apache Kafka: each starts on a directory of the other and continues."""

import asyncio
from pathlib import Path

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic
from tests.support.servers.apache_kafka import CLUSTER_ID, ApacheKafka
from tests.support.servers.kafka_server import default_properties, free_ports, properties_text
from tests.support.servers.ottla_server import format_ottla, run_ottla

from ottla.broker.runtime.controller import ControllerRuntime
from ottla.broker.runtime.metadata_loader import MetadataLoader
from ottla.broker.runtime.quorum import QuorumRuntime
from ottla.broker.runtime.snapshot_writer import SnapshotWriter
from ottla.broker.runtime.start import start_metadata
from ottla.config.broker import BrokerConfig
from ottla.env.real.world import real_world
from ottla.ids import Uuid, uuid_text
from ottla.log.directories.meta_properties import read_meta_properties
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerSettings
from ottla.metadata.image.cluster import Endpoint
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, ResourceType
from ottla.raft.quorum_state import read_quorum_state
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.control import ControlType, parse_control_type
from ottla.records.reader import read_records
from ottla.wire.base import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.metadata_records import ConfigRecord, PartitionRecord, TopicRecord

pytestmark = pytest.mark.kafka

FOLDER = "__cluster_metadata-0"
DIRECTORY_ID = uuid_text(Uuid(b"directory of one"))
SNAPSHOT_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": 2000}
STATIC = "controller.quorum.voters"


# -- formatting


def write_config(folder: Path, data_dirs: str, **changes: object) -> Path:
    settings = default_properties(data_dirs, 29092, 29093) | {name.replace("_", "."): each for name, each in changes.items()}
    path = folder / "server.properties"
    path.write_text(properties_text({name: each for name, each in settings.items() if each != ""}))
    return path


def described(path: Path) -> list[object]:
    """A checkpoint without its times: offsets, attributes and records of its batches."""
    shown: list[object] = []
    for view in iterate_batches(path.read_bytes()):
        shown.append((view.base_offset, view.last_offset, view.leader_epoch, view.attributes, view.producer_id, view.size))
        for record in read_records(view):
            is_header = view.is_control and parse_control_type(record.key) == ControlType.SNAPSHOT_HEADER
            shown.append((record.key, None if is_header else record.value, record.headers))
    return shown


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        (["--initial-controllers", f"1@localhost:29093:{DIRECTORY_ID}"], {}),
        pytest.param(
            ["--initial-controllers", f"1@localhost:29093:{DIRECTORY_ID}"],
            {"metadata_log_dir": "METADATA"},
            marks=pytest.mark.slow,
        ),
        pytest.param(["--no-initial-controllers"], {}, marks=pytest.mark.slow),
        pytest.param(
            [],
            {"controller_quorum_voters": "1@localhost:29093", "controller_quorum_bootstrap_servers": ""},
            marks=pytest.mark.slow,
        ),
        pytest.param(["-I", f"1@localhost:29093:{DIRECTORY_ID}", "--release-version", "3.9"], {}, marks=pytest.mark.slow),
        pytest.param(
            ["-I", f"1@localhost:29093:{DIRECTORY_ID}", "-f", "group.version=0", "-f", "transaction.version=1"],
            {},
            marks=pytest.mark.slow,
        ),
        (
            [
                "--no-initial-controllers",
                "--add-scram",
                "SCRAM-SHA-256=[name=alice,password=schön,salt=c2FsdA==]",
                "-S",
                'SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]',
                "-S",
                'SCRAM-SHA-512=[name=bob,password="in quotes",salt="N3E="]',
            ],
            {},
        ),
    ],
)
def test_format_writes_the_same_as_kafkas_storage_tool(
    apache_kafka: ApacheKafka, tmp_path: Path, options: list[str], changes: dict[str, str]
) -> None:
    for kind in ("apache", "ottla"):
        home = tmp_path / kind
        home.mkdir()
        placed = {name: text.replace("METADATA", str(home / "m")) for name, text in changes.items()}
        config = write_config(home, f"{home}/a,{home}/b", **placed)
        arguments = ["format", "-t", CLUSTER_ID, "-c", config, *options]
        if kind == "ottla":
            done = run_ottla("storage", *arguments)
            assert done.returncode == 0, done.stderr
        else:
            unserved = [] if "--release-version" in options else ["-f", "share.version=0", "-f", "streams.version=0"]
            apache_kafka.run_tool("kafka.tools.StorageTool", *arguments, *unserved)
    files = {
        kind: sorted(str(path.relative_to(tmp_path / kind)) for path in (tmp_path / kind).rglob("*"))
        for kind in ("apache", "ottla")
    }
    assert files["ottla"] == files["apache"]
    for name in files["apache"]:
        ours, theirs = tmp_path / "ottla" / name, tmp_path / "apache" / name
        if name.endswith(".checkpoint"):
            assert described(ours) == described(theirs)
        elif name.endswith("meta.properties"):
            assert keys(ours) == keys(theirs)


def keys(path: Path) -> list[str]:
    """The lines of a meta.properties, without random ids and times."""
    lines = path.read_text().splitlines()
    return [line.partition("=")[0] if line.startswith("directory.id") else line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("command", ["info", pytest.param("format", marks=pytest.mark.slow)])
def test_each_tool_recognises_the_others_directories(apache_kafka: ApacheKafka, tmp_path: Path, command: str) -> None:
    config = write_config(tmp_path, f"{tmp_path}/a,{tmp_path}/b")
    assert run_ottla("storage", "format", "-s", "-t", CLUSTER_ID, "-c", config).returncode == 0
    if command == "info":
        theirs = apache_kafka.run_tool("kafka.tools.StorageTool", "info", "-c", config)
        ours = run_ottla("storage", "info", "-c", config)
        assert ours.stdout == theirs.stdout
    else:
        refused = apache_kafka.run_tool("kafka.tools.StorageTool", "format", "-s", "-t", "x", "-c", config, check=False)
        assert refused.rc == 1


BAD_CREDENTIALS = [
    "SCRAM-SHA-256",
    "SCRAM-MD5=[name=a,password=b]",
    "SCRAM-SHA-256=name=a,password=b",
    "SCRAM-SHA-256=[name=a]",
    "SCRAM-SHA-256=[password=b]",
    "SCRAM-SHA-256=[name=a,saltedpassword=YCE=]",
    "SCRAM-SHA-256=[name=a,password=b,iterations=4095]",
    "SCRAM-SHA-256=[name=a,password=b,iterations=16385]",
    "SCRAM-SHA-256=[name=a,password=b,salt=?]",
    "SCRAM-SHA-256=[name=a,password=b,more=c]",
]


@pytest.mark.slow  # each starts Java
@pytest.mark.parametrize("argument", BAD_CREDENTIALS)
def test_both_refuse_invalid_scram_credentials(apache_kafka: ApacheKafka, tmp_path: Path, argument: str) -> None:
    config = write_config(tmp_path, f"{tmp_path}/a")
    arguments = ("format", "-s", "-t", CLUSTER_ID, "-c", config, "-S", argument)
    assert apache_kafka.run_tool("kafka.tools.StorageTool", *arguments, check=False).rc != 0
    refused = run_ottla("storage", *arguments)
    assert (refused.returncode, refused.stderr.startswith("ottla: --add-scram")) == (1, True)
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_apache_reads_the_scram_credentials_of_a_new_cluster(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    login = ["-S", "SCRAM-SHA-256=[name=alice,password=secret]", "-S", "SCRAM-SHA-512=[name=bob,password=x,iterations=5000]"]
    properties = default_properties(tmp_path / "data", *free_ports(2))
    format_ottla(properties, options=login)
    with apache_kafka.start_server(properties, data_dir=tmp_path / "data") as server:
        where = ("--bootstrap-server", server.bootstrap)
        shown = apache_kafka.run_tool("kafka.admin.ConfigCommand", *where, "--describe", "--entity-type", "users").stdout
    assert sorted(shown.splitlines()) == [
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096",
        "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-512=iterations=5000",
    ]


# -- the metadata log, written by both in turn


class OttlaTurn:
    """Our quorum and controller, without a broker, on a directory of Apache Kafka."""

    def __init__(self, data_dir: Path, properties: dict[str, object]) -> None:
        settings = default_properties(data_dir, 29092, 29093) | properties
        self._config = BrokerConfig.from_settings({name: str(each) for name, each in settings.items() if each != ""})
        self.data_dir = data_dir
        self.images: list[MetadataImage] = []
        self.epoch = -1

    def write(self, *records: Message, snapshot: bool = False) -> MetadataImage:
        """Start, write `records`, perhaps take a snapshot, stop. Returns the image published before."""
        return asyncio.run(self._write(records, snapshot))

    async def _write(self, records: tuple[Message, ...], snapshot: bool) -> MetadataImage:
        with real_world() as world:
            meta = read_meta_properties(world.disk, str(self.data_dir))
            assert meta is not None
            assert meta.directory_id is not None
            quorum = await QuorumRuntime.open(world, self._config, meta.directory_id)
            loader = MetadataLoader(self._publish, SnapshotWriter(world.clock, self._config, quorum))
            endpoints = [Endpoint("CONTROLLER", "127.0.0.1", 29093, 0)]
            settings = ControllerSettings(meta.cluster_id, meta.node_id)
            controller = ControllerRuntime(world, self._config, settings, quorum, loader, endpoints)
            await start_metadata(quorum, loader, controller, endpoints)
            found = loader.published
            await controller.write(lambda state, now_ms: Decision(None, records))
            await loader.caught_up()
            if snapshot:
                await loader.snapshots.write(loader.published)
            self.epoch = quorum.epoch
            await loader.close()
            await quorum.close()
            return found

    async def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.images.append(image)


def topics_of(client: RawClient) -> dict[str, list[int]]:
    found = client.request(MetadataRequest(topics=None), 12).topics
    return {topic.name: [partition.leader_id for partition in topic.partitions] for topic in found}


def retention_of(client: RawClient, name: str) -> str:
    resource = DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=["retention.ms"])
    (result,) = client.request(DescribeConfigsRequest(resources=[resource]), 4).results
    return str(result.configs[0].value)


def quorum_of(client: RawClient) -> tuple[int, int, list[Uuid]]:
    topic = DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
    )
    found = client.request(DescribeQuorumRequest(topics=[topic]), 2).topics[0].partitions[0]
    return found.leader_id, found.leader_epoch, [voter.replica_directory_id for voter in found.current_voters]


def finalized(client: RawClient) -> dict[str, int]:
    found = client.request(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3).finalized_features
    return {feature.name: feature.max_version_level for feature in found}


@pytest.mark.slow
def test_apache_starts_on_what_we_have_formatted(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    config = write_config(tmp_path, str(tmp_path / "data"))
    assert run_ottla("storage", "format", "-s", "-t", CLUSTER_ID, "-c", config, "-f", "group.version=0").returncode == 0
    with apache_kafka.start_server(data_dir=tmp_path / "data") as server, RawClient(server.port) as client:
        make_topic(server.bootstrap, "first", 2)
        assert topics_of(client) == {"first": [1, 1]}
        assert finalized(client) == {
            "metadata.version": 30,
            "kraft.version": 1,
            "transaction.version": 2,
            "eligible.leader.replicas.version": 1,
        }
        leader_id, epoch, voters = quorum_of(client)
        with real_world() as world:
            meta = read_meta_properties(world.disk, str(tmp_path / "data"))
        assert meta is not None
        assert (leader_id, epoch, voters) == (1, 1, [meta.directory_id])


@pytest.mark.slow
@pytest.mark.parametrize("is_static", [False, True])
@pytest.mark.parametrize("killed", [False, True])
def test_directories_change_hands(apache_kafka: ApacheKafka, tmp_path: Path, is_static: bool, killed: bool) -> None:
    data_dir = tmp_path / "data"
    properties: dict[str, object] = dict(SNAPSHOT_OFTEN)
    if is_static:
        properties |= {STATIC: "1@127.0.0.1:29093", "controller.quorum.bootstrap.servers": ""}
        config = write_config(
            tmp_path, str(data_dir), controller_quorum_voters="1@127.0.0.1:29093", controller_quorum_bootstrap_servers=""
        )
        apache_kafka.run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", config)
    server = apache_kafka.start_server(_for_apache(properties), data_dir=data_dir)
    make_topic(server.bootstrap, "from-apache", 2)
    for number in range(20):
        make_topic(server.bootstrap, f"more-{number}", 2)
    server.kill() if killed else server.stop()

    turn = OttlaTurn(data_dir, properties)
    topic_id = Uuid(b"made in Ottla !!")
    with real_world() as world:
        meta = read_meta_properties(world.disk, str(data_dir))
        before = read_quorum_state(world.disk, f"{data_dir}/{FOLDER}")
    assert meta is not None
    assert meta.directory_id is not None
    assert before is not None
    found = turn.write(
        TopicRecord(name="from-ottla", topic_id=topic_id),
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[meta.directory_id],
        ),
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="from-ottla", name="retention.ms", value="4711"),
    )
    assert turn.epoch == before.epoch + 1
    assert {"from-apache", "more-19"} <= set(found.topics.by_name)
    assert found.features["metadata.version"] == 30
    again = turn.write(
        ConfigRecord(resource_type=ResourceType.TOPIC, resource_name="from-apache", name="retention.ms", value="1234"),
        snapshot=True,
    )
    assert turn.epoch == before.epoch + 2
    assert "from-ottla" in again.topics.by_name
    _check_with_apaches_tool(apache_kafka, data_dir)

    with (
        apache_kafka.start_server(_for_apache(properties), data_dir=data_dir) as server,
        RawClient(server.port) as client,
    ):
        topics = topics_of(client)
        assert topics["from-ottla"] == [1]
        assert topics["from-apache"] == [1, 1]
        assert len(topics) == 22
        assert retention_of(client, "from-ottla") == "4711"
        assert retention_of(client, "from-apache") == "1234"
        assert quorum_of(client)[1] == before.epoch + 3
        make_topic(server.bootstrap, "last", 2)
    assert "last" in turn.write().topics.by_name


def _for_apache(properties: dict[str, object]) -> dict[str, object]:
    """A static voter has a fixed address, and the controller must listen on it."""
    if STATIC not in properties:
        return properties
    broker_port, controller_port = free_ports(2)
    return {name: each for name, each in properties.items() if each != ""} | {
        STATIC: f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}",
    }


def _check_with_apaches_tool(apache_kafka: ApacheKafka, data_dir: Path) -> None:
    """Check that Kafka's own tool reads our log and snapshot without complaints."""
    folder = data_dir / FOLDER
    newest = max(folder.glob("*.checkpoint"))
    assert BatchView(newest.read_bytes()).count >= 1
    files = [*sorted(folder.glob("*.log")), newest]
    dump = apache_kafka.dump_log_segments(files, "--cluster-metadata-decoder")
    assert dump.complaints == []
    text = "\n".join(record.payload or record.rest for file in dump.files for record in file.records)
    assert '"name":"from-ottla"' in text
    assert "SnapshotFooter" in text
