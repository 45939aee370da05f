"""What formatting writes, and what it refuses before it writes anything."""

import asyncio
import errno

import pytest
from tests.support.nodes.quorum_node import CLUSTER_ID, DIRECTORY, FOLDER, QuorumNode, settings_of

from ottla.broker.formatting import FormatRefused, format_if_new
from ottla.env import OpenMode
from ottla.ids import Uuid, uuid_parse, uuid_text
from ottla.log.directories.meta_properties import WrongDirectory, read_meta_properties
from ottla.raft.control import read_kraft_version, read_kraft_voters
from ottla.raft.snapshots import read_snapshot
from ottla.raft.voters import InvalidVoters, ReplicaKey

FIRST_SNAPSHOT = f"{FOLDER}/00000000000000000000-0000000000.checkpoint"
STATIC = {"controller.quorum.voters": "1@localhost:9093", "controller.quorum.bootstrap.servers": ""}


def levels(node: QuorumNode, directory: str = DIRECTORY) -> dict[str, int]:
    path = f"{directory}/bootstrap.checkpoint"
    records = read_snapshot(path, node.disk.read_file(path)).records
    return {record.name: record.feature_level for record in records}  # type: ignore[attr-defined]  # FeatureLevelRecords


def test_standalone_node() -> None:
    async def run() -> None:
        node = QuorumNode()
        lines = await node.format()
        assert lines == [f"Formatted dynamic metadata voter directory {DIRECTORY} with metadata.version 4.3-IV0."]
        meta = read_meta_properties(node.disk, DIRECTORY)
        assert meta is not None
        assert (meta.cluster_id, meta.node_id) == (CLUSTER_ID, 1)
        content = read_snapshot(FIRST_SNAPSHOT, node.disk.read_file(FIRST_SNAPSHOT))
        assert read_kraft_version(content.controls[0]) == 1
        (voter,) = read_kraft_voters(content.controls[1])
        assert voter.key == ReplicaKey(1, meta.directory_id or Uuid(b"")), "the voter is known by its directory"
        assert dict(voter.endpoints) == {"CONTROLLER": ("localhost", 9093)}
        assert list(levels(node).items()) == [
            ("metadata.version", 30),
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("transaction.version", 2),
        ]
        assert node.disk.list_directory(DIRECTORY) == ["__cluster_metadata-0", "bootstrap.checkpoint", "meta.properties"]

    asyncio.run(run())


def test_several_directories_each_with_an_id_of_its_own() -> None:
    async def run() -> None:
        node = QuorumNode({"log.dirs": "/a,/b", "metadata.log.dir": "/m/n"})
        lines = await node.format()
        assert [line.split(" with ")[0] for line in lines] == [
            "Formatted data directory /a",
            "Formatted data directory /b",
            "Formatted dynamic metadata voter directory /m/n",
        ]
        ids = {read_meta_properties(node.disk, path).directory_id for path in ("/a", "/b", "/m/n")}  # type: ignore[union-attr]
        assert len(ids) == 3
        assert "__cluster_metadata-0" not in node.disk.list_directory("/a")
        assert levels(node, "/b") == levels(node, "/m/n")

    asyncio.run(run())


def test_a_static_quorum_has_no_voters_on_disk() -> None:
    async def run() -> None:
        node = QuorumNode(STATIC)
        assert "Formatted metadata directory" in (await node.format(standalone=False))[0]
        assert node.disk.list_directory(DIRECTORY) == ["bootstrap.checkpoint", "meta.properties"]

    asyncio.run(run())


def test_initial_controllers_are_written_as_given() -> None:
    async def run() -> None:
        node = QuorumNode()
        mine, other = uuid_text(Uuid(b"m" * 16)), uuid_text(Uuid(b"o" * 16))
        await node.format(standalone=False, initial_controllers=f"1@localhost:9093:{mine},2@there:9093:{other}")
        content = read_snapshot(FIRST_SNAPSHOT, node.disk.read_file(FIRST_SNAPSHOT))
        assert read_kraft_voters(content.controls[1]).ids == (1, 2)
        meta = read_meta_properties(node.disk, DIRECTORY)
        assert meta is not None
        assert meta.directory_id == uuid_parse(mine)

    asyncio.run(run())


def test_node_that_joins_later_gets_no_voters() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format(standalone=False, no_initial_controllers=True)
        assert not node.disk.exists(FOLDER)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"release_version": "3.6"}, {"metadata.version": 14}),
        ({"release_version": "4.0-IV0"}, {"metadata.version": 22, "group.version": 1}),
        ({"features": {"metadata.version": 14}}, {"metadata.version": 14}),
        (
            {"features": {"group.version": 0, "eligible.leader.replicas.version": 0, "share.version": 0, "kraft.version": 1}},
            {"metadata.version": 30, "transaction.version": 2},
        ),
        (
            {"features": {"transaction.version": 1}},
            {"metadata.version": 30, "eligible.leader.replicas.version": 1, "group.version": 1, "transaction.version": 1},
        ),
    ],
)
def test_levels_of_features(options: dict[str, object], expected: dict[str, int]) -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format(**options)
        assert levels(node) == expected

    asyncio.run(run())


@pytest.mark.parametrize(
    ("changes", "options", "complaint"),
    [
        ({}, {"cluster_id": ""}, "cannot be a cluster id"),
        ({}, {"cluster_id": "two words"}, "cannot be a cluster id"),
        ({}, {"features": {"foo.version": 1}}, "no feature foo.version: the features are"),
        ({}, {"features": {"group.version": 7}}, "group.version has no level 7: it can be 0 to 1"),
        ({}, {"features": {"metadata.version": 99}}, "metadata.version has no level 99"),
        ({}, {"features": {"share.version": 1}}, "does not serve it yet"),
        ({}, {"features": {"kraft.version": 0}}, "dynamic quorum has kraft.version 1"),
        (STATIC, {"standalone": False, "features": {"kraft.version": 1}}, "static quorum has kraft.version 0"),
        (
            {},
            {"release_version": "3.9", "features": {"eligible.leader.replicas.version": 1}},
            "needs metadata.version=23 or more, and it is 21",
        ),
        ({}, {"release_version": "9.9"}, "no release version '9.9': use one of 3.3-IV3"),
        ({}, {"release_version": "4.0", "features": {"metadata.version": 22}}, "use one of them"),
        ({}, {"standalone": False}, "add --standalone"),
        ({}, {"no_initial_controllers": True}, "exclude each other"),
        (STATIC, {}, "controller.quorum.voters makes the quorum a static one"),
        (
            {"process.roles": "broker", "listeners": "PLAINTEXT://localhost:9092"},
            {},
            "--standalone is for controllers",
        ),
    ],
)
def test_invalid_options_are_refused_and_nothing_is_written(
    changes: dict[str, str], options: dict[str, object], complaint: str
) -> None:
    async def run() -> None:
        node = QuorumNode(changes)
        with pytest.raises(FormatRefused, match=complaint):
            await node.format(**options)
        assert node.disk.list_directory("/") == []

    asyncio.run(run())


def test_bad_controllers_are_refused() -> None:
    with pytest.raises(InvalidVoters):
        asyncio.run(QuorumNode().format(standalone=False, initial_controllers="nonsense"))


def test_a_formatted_directory_is_left_alone() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format()
        before = node.disk.read_file(f"{DIRECTORY}/meta.properties")
        with pytest.raises(FormatRefused, match=f"{DIRECTORY} is already formatted, for node 1 of cluster"):
            await node.format()
        assert await node.format(ignore_formatted=True) == ["All of the log directories are already formatted."]
        with pytest.raises(WrongDirectory, match="belongs to cluster"):
            await node.format(ignore_formatted=True, cluster_id="another")
        node.configure({"node.id": "2"})
        with pytest.raises(WrongDirectory, match="belongs to node 1"):
            await node.format(ignore_formatted=True)
        assert node.disk.read_file(f"{DIRECTORY}/meta.properties") == before

    asyncio.run(run())


def test_a_new_directory_joins_the_formatted_ones() -> None:
    async def run() -> None:
        node = QuorumNode()
        await node.format()
        node.configure({"log.dirs": f"{DIRECTORY},/more"})
        (line,) = await node.format(ignore_formatted=True)
        assert line.startswith("Formatted data directory /more")

    asyncio.run(run())


def test_a_new_file_system_of_its_own_is_an_empty_folder() -> None:
    """Its lost+found comes with it."""

    async def run() -> None:
        node = QuorumNode({"log.dirs": "/disk"})
        node.disk.make_directory("/disk/lost+found")
        (line,) = await format_if_new(node.world, settings_of({"log.dirs": "/disk"}))
        assert line.startswith("Formatted dynamic metadata voter directory /disk")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("operation", "code", "advice"),
    [
        ("make_directory", errno.EACCES, "Give the user of this process the right to write there, or name another folder"),
        ("make_directory", errno.EROFS, "Mount its file system writable, or name another folder"),
        ("make_directory", errno.ENOENT, "Name another folder"),
        ("append", errno.ENOSPC, "Free space on its disk, or name another folder"),
        ("open", errno.EACCES, "Give the user of this process the right to write there, or name another folder"),
    ],
)
def test_directory_that_cannot_be_made_says_why_and_what_to_do(operation: str, code: int, advice: str) -> None:
    async def run() -> None:
        node = QuorumNode({"log.dirs": "/new"})
        node.disk.fail(operation, "/new*", code)
        with pytest.raises(FormatRefused) as refused:
            await format_if_new(node.world, settings_of({"log.dirs": "/new"}))
        assert str(refused.value).startswith("log directory /new cannot be made: ")
        assert str(refused.value).endswith(f". {advice} (log.dirs; --data of `ottla up`)")
        assert "offline" not in str(refused.value)

    asyncio.run(run())


@pytest.mark.parametrize("directory", ["/file", "/file/data"])
def test_file_in_the_way_of_a_directory_is_named(directory: str) -> None:
    async def run() -> None:
        node = QuorumNode({"log.dirs": directory})
        node.disk.open("/file", OpenMode.CREATE).close()
        text = f"log directory {directory} cannot be made: /file is a file, not a folder. Name another folder"
        with pytest.raises(FormatRefused, match=text):
            await format_if_new(node.world, settings_of({"log.dirs": directory}))
        with pytest.raises(FormatRefused, match=text):
            await node.format()

    asyncio.run(run())


def test_a_node_that_runs_alone_formats_itself_once() -> None:
    async def run() -> None:
        node = QuorumNode()
        assert len(await format_if_new(node.world, settings_of())) == 1
        meta = read_meta_properties(node.disk, DIRECTORY)
        assert meta is not None
        assert uuid_parse(meta.cluster_id)
        assert await format_if_new(node.world, settings_of()) == []
        more = settings_of({"log.dirs": f"{DIRECTORY},/more"})
        assert len(await format_if_new(node.world, more)) == 1
        added = read_meta_properties(node.disk, "/more")
        assert added is not None
        assert added.cluster_id == meta.cluster_id
        await node.start()

    asyncio.run(run())


def test_a_node_that_runs_alone_begins_with_the_levels_that_are_wanted() -> None:
    async def run() -> None:
        node = QuorumNode()
        await format_if_new(node.world, settings_of(), {"transaction.version": 1})
        assert (levels(node)["transaction.version"], levels(node)["group.version"]) == (1, 1)

    asyncio.run(run())


def test_lost_metadata_directory_is_not_formatted_again() -> None:
    async def run() -> None:
        node = QuorumNode({"log.dirs": "/a,/b"})
        await node.format()
        await node.disk.remove_directory("/a")
        with pytest.raises(FormatRefused, match="where the metadata log belongs"):
            await format_if_new(node.world, settings_of({"log.dirs": "/a,/b"}))

    asyncio.run(run())
