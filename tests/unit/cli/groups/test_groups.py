"""`ottla groups` against a coordinator in memory: older brokers, coordinators that move, tables, and wrong usage."""

import json
from collections.abc import Iterator

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions
from tests.unit.cli.conftest import RunOttla, describe, metadata_of
from tests.unit.cli.groups.conftest import END, describe_classic, find_coordinator

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.api_versions import ApiVersion
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest

OLD = all_versions(
    FindCoordinator=(0, 3), DescribeGroups=(0, 5), ConsumerGroupDescribe=None, OffsetFetch=(1, 7), ListGroups=(0, 3)
)


def words(text: str) -> str:
    return " ".join(text.split())


def test_list_filters_by_state_type_and_protocol(ottla: RunOttla, coordinator: FakeNode) -> None:
    assert ottla("groups", "list").lines == ["idle", "new", "old"]
    assert ottla("consumer-groups", "--list", "--type").lines[1].split() == ["idle", "Classic"]
    assert [line.split()[0] for line in ottla("groups", "list", "--protocol").lines] == [
        "GROUP",
        "idle",
        "new",
        "old",
        "shared",
        "worker",
    ]
    assert ottla("groups", "list", "--protocol", "connect").lines[1].split() == ["worker", "connect"]
    assert [each["state"] for each in json.loads(ottla("groups", "list", "--json").out)] == ["Empty", "Stable", "Stable"]
    assert ottla("groups", "list", "--state", "preparing-rebalance,STABLE", "--type", "consumer").rc == 0
    asked = coordinator.asked_for(ListGroupsRequest)[-1]
    assert (asked.states_filter, asked.types_filter) == (["PreparingRebalance", "Stable"], ["Consumer"])


@pytest.mark.parametrize("served", [all_versions(), OLD], ids=["new", "old"])
def test_old_and_new_brokers_describe_all_groups(ottla: RunOttla, coordinator: FakeNode, served: list[ApiVersion]) -> None:
    coordinator.served = served
    said = ottla("groups", "describe", "old", "idle")
    assert said.rc == 0, said.err
    assert "group idle has no active members" in said.err
    rows = [line.split() for line in said.lines if line.startswith(("old", "idle"))]
    assert ["old", "orders", "0", "4", "10", "6", "m-1", "/1.2.3.4", "me"] in rows
    assert ["old", "orders", "1", "-", "10", "-", "m-1", "/1.2.3.4", "me"] in rows
    missing = ottla("groups", "describe", "absent")
    assert (missing.rc, "group absent does not exist (GROUP_ID_NOT_FOUND)" in missing.err) == (1, True)


def test_groups_without_members_share_one_warning(ottla: RunOttla, coordinator: FakeNode) -> None:
    names = [f"idle-{number}" for number in range(7)]
    coordinator.handlers[ListGroupsRequest] = lambda request, version: ListGroupsResponse(
        groups=[ListedGroup(group_id=name, protocol_type="consumer", group_state="Empty") for name in names]
    )
    coordinator.handlers[DescribeGroupsRequest] = lambda request, version: DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=name, group_state="Empty", protocol_type="consumer") for name in request.groups]
    )
    coordinator.served = OLD
    said = ottla("groups", "describe", "--all-groups", "--state")
    assert (said.rc, said.err) == (
        0,
        "ottla: 7 groups have no active members: idle-0, idle-1, idle-2, idle-3, idle-4 and 2 more\n",
    )


def test_a_cluster_without_groups_has_no_coordinators_to_ask(ottla: RunOttla, coordinator: FakeNode) -> None:
    coordinator.handlers[ListGroupsRequest] = lambda request, version: ListGroupsResponse()
    said = ottla("groups", "describe")
    assert (said.rc, said.out, said.err) == (0, "", "")
    assert coordinator.asked_for(FindCoordinatorRequest) == []


def test_old_broker_cannot_filter_by_state(ottla: RunOttla, coordinator: FakeNode) -> None:
    coordinator.served = OLD
    refused = ottla("groups", "list", "--state", "stable")
    assert (refused.rc, "too old to list groups by state" in words(refused.err)) == (1, True)
    assert ottla("groups", "list", "--state").rc == 0


def test_offsets_of_a_deleted_topic_have_no_end(ottla: RunOttla, coordinator: FakeNode) -> None:
    lines = ottla("groups", "describe", "idle", "--offsets", "--verbose").lines
    assert lines[2].split() == ["idle", "gone", "0", "-", "1", "-", "-", "-", "-", "-"]
    assert lines[3].split() == ["idle", "orders", "0", "7", "4", "10", "6", "-", "-", "-"]


def test_partitions_without_a_leader_are_not_waited_for(ottla: RunOttla, coordinator: FakeNode) -> None:
    coordinator.handlers[MetadataRequest] = metadata_of(describe("orders", leader=-1))
    assert ottla("groups", "describe", "idle").lines[3].split()[3:6] == ["4", "-", "-"]
    refused = ottla("groups", "reset-offsets", "idle", "--topic", "orders", "--to-latest")
    assert (refused.rc, "does not exist or has no leader" in refused.err) == (1, True)


def test_members_of_the_new_protocol_have_epochs_and_targets(ottla: RunOttla, coordinator: FakeNode) -> None:
    said = ottla("groups", "describe", "new", "--members", "--verbose")
    assert "is rebalancing (Reconciling)" in said.err
    assert said.lines[2].split() == ["new", "m-2", "i", "/1.2.3.4", "me", "1", "4", "orders:0", "5", "orders:0,1"]
    (shown,) = json.loads(ottla("groups", "describe", "new", "--json").out)
    assert (shown["groupEpoch"], shown["targetAssignmentEpoch"], shown["assignor"]) == (5, 5, "uniform")
    assert shown["members"][0]["targetAssignment"] == {"orders": [0, 1]}
    (state,) = json.loads(ottla("groups", "describe", "new", "--state", "--json").out)
    assert "members" not in state
    assert "offsets" not in state
    assert len(coordinator.asked_for(OffsetFetchRequest)) == 1


def test_a_coordinator_that_moves_or_loads_is_asked_again(ottla: RunOttla, coordinator: FakeNode) -> None:
    codes: Iterator[int] = iter([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])

    def describe_when_loaded(request: DescribeGroupsRequest, version: int) -> DescribeGroupsResponse:
        response = describe_classic(request, version)
        response.groups[0].error_code = next(codes, 0)
        return response

    found = iter([ErrorCode.COORDINATOR_NOT_AVAILABLE])

    def find_when_there(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        code = next(found, 0)
        return (
            FindCoordinatorResponse(coordinators=[Coordinator(key=request.coordinator_keys[0], error_code=code)])
            if code
            else find_coordinator(request, version)
        )

    coordinator.handlers |= {DescribeGroupsRequest: describe_when_loaded, FindCoordinatorRequest: find_when_there}
    assert ottla("groups", "describe", "idle", "--state").rc == 0
    assert len(coordinator.asked_for(DescribeGroupsRequest)) == 3


def test_reset_changes_offsets_only_with_execute(ottla: RunOttla, coordinator: FakeNode) -> None:
    planned = ottla("groups", "reset-offsets", "idle", "--topic", "orders", "--to-latest")
    assert "nothing was changed: add --execute" in planned.err
    assert coordinator.asked_for(OffsetCommitRequest) == []
    done = ottla("groups", "reset-offsets", "idle", "--topic", "orders", "--to-latest", "--execute")
    assert (done.rc, done.err, done.out) == (0, "", planned.out)
    (commit,) = coordinator.asked_for(OffsetCommitRequest)
    assert [(each.partition_index, each.committed_offset) for each in commit.topics[0].partitions] == [(0, END), (1, END)]
    assert (commit.generation_id_or_member_epoch, commit.member_id) == (-1, "")
    as_json = json.loads(ottla("groups", "reset-offsets", "idle", "--topic", "orders:1", "--to-earliest", "--json").out)
    assert as_json == [{"group": "idle", "topic": "orders", "partition": 1, "newOffset": 2}]


def test_groups_with_members_are_skipped_and_reported(ottla: RunOttla, coordinator: FakeNode) -> None:
    said = ottla("groups", "reset-offsets", "--all-groups", "--topic", "orders:0", "--to-offset", "99", "--execute")
    assert said.rc == 1
    assert "group old can only be reset while it has no members" in said.err
    assert "offset 99 is after the end of partition orders-0: using 10" in said.err
    assert [commit.group_id for commit in coordinator.asked_for(OffsetCommitRequest)] == ["idle"]


def test_no_offset_is_changed_if_one_cannot_be(ottla: RunOttla, coordinator: FakeNode) -> None:
    said = ottla("groups", "reset-offsets", "idle", "fresh", "--topic", "orders", "--shift-by", "1", "--execute")
    assert (said.rc, "partition orders-1 cannot be shifted" in said.err) == (1, True)
    assert coordinator.asked_for(OffsetCommitRequest) == []


def test_delete_reports_deleted_and_failed_groups(ottla: RunOttla, coordinator: FakeNode) -> None:
    codes = {"old": ErrorCode.NON_EMPTY_GROUP, "absent": ErrorCode.GROUP_ID_NOT_FOUND}

    def delete(request: DeleteGroupsRequest, version: int) -> DeleteGroupsResponse:
        results = [DeletableGroupResult(group_id=each, error_code=codes.get(each, 0)) for each in request.groups_names]
        return DeleteGroupsResponse(results=results)

    coordinator.handlers[DeleteGroupsRequest] = delete
    said = ottla("groups", "delete", "old", "idle", "absent", "--json")
    assert said.rc == 1
    shown = json.loads(said.out)
    assert shown["deleted"] == ["idle"]
    assert "still has members; stop them first" in shown["failed"]["old"]
    assert "`ottla groups describe GROUP --members` shows them" in shown["failed"]["old"]
    assert "does not exist" in shown["failed"]["absent"]


def test_tables_for_people(ottla: RunOttla, coordinator: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("command", "describe", "reset_offsets"):
        monkeypatch.setattr(f"ottla.cli.groups.{module}.is_for_people", lambda *_: True)
    assert "Coordinator" in ottla("groups", "list").out
    said = ottla("groups", "describe", "new", "--verbose", "--wide").out
    assert (
        "new  (consumer, Reconciling, uniform, 1 member, epoch 5, target assignment of epoch 5; coordinator 1 at localhost:"
        in said
    )
    assert "old  (classic, Stable, range, 1 member; coordinator 1" in ottla("groups", "describe", "old", "--state").out
    assert "New offset" in ottla("groups", "reset-offsets", "idle", "--topic", "orders", "--to-latest").out


def test_completion_offers_groups(coordinator: FakeNode, ottla: RunOttla) -> None:
    import click

    from ottla.cli.groups.command import complete_groups

    command = click.Command("x")
    context = click.Context(command)
    assert complete_groups(context, click.Argument(["x"]), "o") == ["old"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "--state", "asleep"), "--state does not know 'asleep': choose from Assigning"),
        (("list", "--type", "share"), "--type does not know 'share'"),
        (("describe", "old", "--members", "--state"), "cannot be used together: choose one"),
        (("describe", "old", "--all-groups"), "not both"),
        (("delete",), "name the group"),
        (("delete", "old", "--all-groups"), "not both"),
        (("delete-offsets", "old"), "name one group and the topics"),
        (("delete-offsets", "old", "--group", "old", "--topic", "x"), "name one group"),
        (("reset-offsets", "idle", "--topic", "orders"), "say where to"),
        (("reset-offsets", "idle", "--topic", "orders", "--to-latest", "--shift-by", "1"), "cannot be used together"),
        (("reset-offsets", "idle", "--to-latest"), "say which partitions"),
        (("reset-offsets", "idle", "--to-latest", "--topic", "x", "--all-topics"), "say which partitions"),
        (("reset-offsets", "idle", "--to-latest", "--topic", "orders:a"), "such as orders:0,1, not 'orders:a'"),
        (("reset-offsets", "idle", "--to-latest", "--all-topics", "--dry-run", "--execute"), "cannot be used together"),
        (("reset-offsets", "idle", "--from-file", "x", "--all-topics"), "--from-file names the partitions"),
        (("reset-offsets", "idle", "--from-file", "/no/such/file"), "cannot be read"),
        (("reset-offsets", "idle", "--by-duration", "soon", "--all-topics"), "--by-duration does not understand 'soon'"),
        (("reset-offsets", "idle", "--to-datetime", "soon", "--all-topics"), "--to-datetime does not understand 'soon'"),
        (("--list", "--describe"), "choose one"),
        (("list", "--zookeeper", "x"), "Kafka 4 has no ZooKeeper"),
    ],
)
def test_wrong_usage(ottla: RunOttla, coordinator: FakeNode, arguments: tuple[str, ...], said: str) -> None:
    refused = ottla("groups", *arguments)
    assert refused.rc == 2
    assert said in words(refused.err)
    assert not coordinator.asked_for(ConsumerGroupDescribeRequest)


def test_regular_expressions_have_re2_syntax(ottla: RunOttla) -> None:
    assert ottla("groups", "validate-regex", "orders-.*").out == "The regular expression `orders-.*` is valid.\n"
    for pattern in ("a(", r"(a)\1", "(?=a)"):
        said = ottla("groups", "--validate-regex", pattern)
        assert (said.rc, f"`{pattern}` is invalid" in said.out) == (1, True)
