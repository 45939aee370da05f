"""`ottla groups` compared with kafka-consumer-groups, on one cluster: both see all changes and print the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compat.cli.conftest import RunOttla, RunTool
from tests.support.peers.group_members import MemberOptions, Members
from tests.support.peers.topics import await_true

VIEWS = (
    (),
    ("--offsets", "--verbose"),
    ("--members",),
    ("--members", "--verbose"),
    ("--state",),
    ("--state", "--verbose"),
)


@pytest.fixture
def members() -> Iterator[Members]:
    def no_java() -> Any:
        raise AssertionError("these tests use confluent-kafka")

    with Members(no_java) as opened:
        yield opened


@pytest.fixture
def filled(ottla: RunOttla, topic: str) -> str:
    """Three partitions: ten records in the first, five in the second, none in the third."""
    assert ottla("topics", "create", topic, "--partitions", 3).rc == 0
    for partition, count in ((0, 10), (1, 5)):
        done = ottla("produce", topic, "--partition", partition, stdin=b"x\n" * count)
        assert done.rc == 0, done.err
    return topic


def lines(text: str) -> list[str]:
    """The printed lines, sorted: groups and members come in any order."""
    return sorted(line.rstrip() for line in text.splitlines() if line.strip())


def same(ottla: RunOttla, kafka: RunTool, *flags: object) -> list[str]:
    """Check that both tools print the same. Returns the lines."""
    ours, theirs = ottla("groups", *flags), kafka("groups", *flags)
    assert (ours.rc, lines(ours.out)) == (theirs.rc, lines(theirs.out)), (flags, ours.err, theirs.err)
    return lines(ours.out)


def described(ottla: RunOttla, group: str) -> dict[str, Any]:
    said = ottla("groups", "describe", group, "--json")
    assert said.rc == 0, said.err
    (shown,) = json.loads(said.out)
    assert isinstance(shown, dict)
    return shown


def await_members(ottla: RunOttla, group: str, count: int, partitions: int) -> None:
    """Return when the group is stable with `count` members and all partitions assigned."""

    def is_shared() -> bool:
        said = ottla("groups", "describe", group, "--json")
        if said.rc:
            return False
        (shown,) = json.loads(said.out)
        assigned = sum(len(numbers) for each in shown["members"] for numbers in each["assignment"].values())
        return shown["state"] == "Stable" and (shown["memberCount"], assigned) == (count, partitions)

    await_true(is_shared, f"{count} members of {group} to share {partitions} partitions")


def commit(ottla: RunOttla, group: str, topic: str, offset: int) -> None:
    done = ottla("groups", "reset-offsets", group, "--topic", topic, "--to-offset", offset, "--execute")
    assert done.rc == 0, done.err


@pytest.mark.parametrize("protocol", ["eager", "cooperative", "consumer"])
def test_live_groups_are_described_alike(
    ottla: RunOttla, kafka: RunTool, members: Members, bootstrap: str, filled: str, protocol: str
) -> None:
    group = f"group-of-{filled}-{protocol}"
    commit(ottla, group, f"{filled}:0", 4)
    for instance_id in ("", "instance-2"):
        options = MemberOptions(
            group, (filled,), protocol=protocol, instance_id=instance_id, more={"enable.auto.commit": "false"}
        )
        members.open("confluent", bootstrap, options)
    await_members(ottla, group, 2, 3)
    for view in VIEWS:
        said = same(ottla, kafka, "--describe", "--group", group, *view)
        assert all(line.startswith(("GROUP ", f"{group} ")) for line in said)
    for flags in (
        ("--list",),
        ("--list", "--state"),
        ("--list", "--type"),
        ("--list", "--state", "stable", "--type", "consumer"),
    ):
        same(ottla, kafka, *flags)
    assert (group in ottla("groups", "list", "--type", "consumer").out) == (protocol == "consumer")
    shown = described(ottla, group)
    assert shown["type"] == ("Consumer" if protocol == "consumer" else "Classic")
    offsets = {each["partition"]: (each["currentOffset"], each["logEndOffset"], each["lag"]) for each in shown["offsets"]}
    assert offsets == {0: (4, 10, 6), 1: (None, 5, None), 2: (None, 0, None)}
    assert {each["groupInstanceId"] for each in shown["members"]} == {None, "instance-2"}


def test_empty_group_of_the_consumer_protocol_is_described_alike(
    ottla: RunOttla, kafka: RunTool, members: Members, bootstrap: str, filled: str
) -> None:
    group = f"left-{filled}"
    member = members.open("confluent", bootstrap, MemberOptions(group, (filled,), protocol="consumer"))
    await_members(ottla, group, 1, 3)
    member.close()
    await_true(lambda: described(ottla, group)["state"] == "Empty", f"{group} to be empty")
    done = ottla("groups", "reset-offsets", group, "--topic", filled, "--to-offset", 3, "--execute")
    assert (done.rc, done.err.count("offset 3 is after the end")) == (0, 1), done.err
    same(ottla, kafka, "--describe", "--group", group)
    same(ottla, kafka, "--describe", "--group", group, "--state", "--verbose")
    assert [each["currentOffset"] for each in described(ottla, group)["offsets"]] == [3, 3, 0]
    assert ottla("groups", "delete", group).rc == 0
    assert ottla("groups", "describe", group).rc == 1


def test_group_during_its_upgrade_is_described_alike(
    ottla: RunOttla, kafka: RunTool, members: Members, bootstrap: str, filled: str
) -> None:
    group = f"upgrade-{filled}"
    for count, protocol in enumerate(("cooperative", "consumer"), 1):
        members.open("confluent", bootstrap, MemberOptions(group, (filled,), protocol=protocol))
        await_members(ottla, group, count, 3)
    said = same(ottla, kafka, "--describe", "--group", group, "--members", "--verbose")
    assert sorted(line.split()[-1] for line in said) == ["UPGRADED", "false", "true"]
    same(ottla, kafka, "--describe", "--group", group, "--state", "--verbose")


def test_refusals_for_a_live_group_are_one_sentence(ottla: RunOttla, members: Members, bootstrap: str, filled: str) -> None:
    group = f"busy-{filled}"
    commit(ottla, group, f"{filled}:0", 4)
    members.open("confluent", bootstrap, MemberOptions(group, (filled,), more={"enable.auto.commit": "false"}))
    await_members(ottla, group, 1, 3)
    for action, said in (
        (
            ("reset-offsets", group, "--topic", filled, "--to-earliest", "--execute"),
            "can only be reset while it has no members",
        ),
        (("delete", group), "NON_EMPTY_GROUP"),
        (("delete-offsets", group, "--topic", filled), "GROUP_SUBSCRIBED_TO_TOPIC"),
    ):
        refused = ottla("groups", *action)
        assert refused.rc == 1
        assert said in refused.err + refused.out
        assert "Traceback" not in refused.err
    assert described(ottla, group)["offsets"][0]["currentOffset"] == 4


@pytest.mark.parametrize(
    ("target", "offsets"),
    [
        (("--to-earliest",), [2, 0, 0]),
        (("--to-latest",), [10, 5, 0]),
        (("--to-current",), [4, 3, 0]),
        (("--to-offset", "7"), [7, 5, 0]),
        (("--to-offset", "1"), [2, 1, 0]),
        (("--to-datetime", "2020-01-01T00:00:00.000"), [2, 0, 0]),
        (("--to-datetime", "2020-01-01T00:00:00.000+05:30"), [2, 0, 0]),
        (("--to-datetime", "2090-01-01T00:00:00.000Z"), [10, 5, 0]),
        (("--by-duration", "P1D"), [2, 0, 0]),
        (("--by-duration", "PT0.001S"), [10, 5, 0]),
    ],
)
def test_resets_have_the_same_results(
    ottla: RunOttla, kafka: RunTool, filled: str, target: tuple[str, ...], offsets: list[int]
) -> None:
    group = f"reset-{filled}"
    assert ottla("delete-records", f"{filled}:0:2").rc == 0
    commit(ottla, group, f"{filled}:0", 4)
    commit(ottla, group, f"{filled}:1", 3)
    flags = ("--reset-offsets", "--group", group, "--topic", filled, *target)
    planned = lines(ottla("groups", *flags, "--dry-run").out)
    # Kafka's tool mixes its warnings with the result.
    theirs = [line for line in lines(kafka("groups", *flags, "--dry-run").out) if not line.startswith("Warn:")]
    assert planned == theirs
    assert [line.split()[2:] for line in planned if not line.startswith("GROUP ")] == [
        [str(partition), str(offset)] for partition, offset in enumerate(offsets)
    ]
    assert same(ottla, kafka, "--describe", "--group", group, "--offsets")[1].split()[3] == "4"
    assert ottla("groups", *flags, "--execute").rc == 0
    same(ottla, kafka, "--describe", "--group", group, "--offsets")
    assert [each["currentOffset"] for each in described(ottla, group)["offsets"]] == offsets


def test_shifting_and_plans_in_files(ottla: RunOttla, kafka: RunTool, filled: str, tmp_path: Path) -> None:
    one, two = f"shift-1-{filled}", f"shift 2, {filled}"
    for group in (one, two):
        commit(ottla, group, f"{filled}:0,1", 3)
    same(ottla, kafka, "--reset-offsets", "--group", one, "--all-topics", "--shift-by", -2, "--dry-run")
    same(ottla, kafka, "--reset-offsets", "--group", one, "--all-topics", "--shift-by", 99, "--dry-run", "--export")
    assert ottla("groups", "reset-offsets", one, "--topic", filled, "--shift-by", 1).rc == 1
    many = ("--reset-offsets", "--group", one, "--group", two, "--topic", filled, "--to-latest", "--dry-run", "--export")
    same(ottla, kafka, *many)
    exported = tmp_path / "ours.csv"
    exported.write_text(ottla("groups", *many).out)
    alone = tmp_path / "theirs.csv"
    alone.write_text(
        kafka("groups", "--reset-offsets", "--group", one, "--all-topics", "--to-current", "--export", "--dry-run").out
    )
    for file, group in ((exported, two), (alone, one), (exported, one)):
        flags = ("--reset-offsets", "--group", group, "--from-file", file)
        planned = lines(ottla("groups", *flags).out)
        assert planned == lines(kafka("groups", *flags, "--dry-run").out)
        assert len(planned) > 2
    assert kafka("groups", "--reset-offsets", "--group", two, "--from-file", exported, "--execute").rc == 0
    assert [each["lag"] for each in described(ottla, two)["offsets"]] == [0, 0, 0]


def test_offsets_and_groups_are_deleted(ottla: RunOttla, kafka: RunTool, filled: str) -> None:
    group, other = f"old-{filled}", f"older-{filled}"
    commit(ottla, group, filled, 3)
    commit(ottla, other, filled, 3)
    for name in (group, other):
        flags = ("--delete-offsets", "--group", name, "--topic", f"{filled}:0", "--topic", f"{filled}:2")
        ours, theirs = ottla("groups", *flags), kafka("groups", *flags)
        assert (ours.rc, lines(ours.out)) == (theirs.rc, lines(theirs.out))
        assert ours.lines[0] == f"Request succeeded for deleting offsets from group {name}."
        assert [each["partition"] for each in described(ottla, name)["offsets"]] == [1]
    assert ottla("groups", "delete-offsets", group, "--topic", "absent").rc == 1
    done = ottla("groups", "delete", group, "absent", other)
    assert (done.rc, done.out) == (1, f"These consumer groups were deleted successfully: '{group}', '{other}'\n")
    assert "group absent does not exist" in done.err
    assert not {group, other} & set(ottla("groups", "list").lines)
    commit(ottla, group, filled, 3)
    assert ottla("groups", "--delete", "--group", group).out == (
        f"Deletion of requested consumer groups ('{group}') was successful.\n"
    )


def test_lag_is_counted_to_the_high_watermark(ottla: RunOttla, kafka: RunTool, bootstrap: str, filled: str) -> None:
    """Lag includes the records of open transactions, as in Kafka's tool."""
    from confluent_kafka import Producer

    group = f"lag-{filled}"
    commit(ottla, group, f"{filled}:0", 4)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(filled, b"open", partition=0)
    assert producer.flush(30) == 0
    same(ottla, kafka, "--describe", "--group", group)
    assert described(ottla, group)["offsets"][0]["lag"] == 7
    producer.abort_transaction(30)
    await_true(lambda: described(ottla, group)["offsets"][0]["lag"] == 8, "the marker counts, too")
    same(ottla, kafka, "--describe", "--group", group)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("describe", "absent"), 1, "group absent does not exist (GROUP_ID_NOT_FOUND)"),
        (("delete", "absent"), 1, "group absent does not exist"),
        (("delete-offsets", "absent", "--topic", "there"), 1, "group absent does not exist"),
        (("reset-offsets", "absent", "--topic", "nowhere", "--to-earliest"), 1, "topic nowhere does not exist"),
        (("reset-offsets", "absent", "--topic", "there:9", "--to-earliest"), 1, "topic there has no partition 9"),
        (("validate-regex", "a("), 1, ""),
    ],
)
def test_refusals_are_one_sentence(ottla: RunOttla, arguments: tuple[str, ...], code: int, said: str) -> None:
    ottla("topics", "create", "there", "--if-not-exists", "--partitions", 2)
    refused = ottla("groups", *arguments)
    assert refused.rc == code
    assert said in refused.err
    assert "Traceback" not in refused.err
