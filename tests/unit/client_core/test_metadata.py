"""The metadata machine: when it asks, what it keeps of an answer, and what it never takes back."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.client_core.machine import ANY_NODE, Rebootstrap, Request
from ottla.client_core.metadata import Metadata, Node, Recovery
from ottla.errors import NetworkError, RebootstrapRequiredError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

SETTINGS = SimpleNamespace(
    metadata_max_age_ms=300_000,
    metadata_recovery_rebootstrap_trigger_ms=300_000,
    metadata_recovery_strategy="rebootstrap",
    retry_backoff_ms=100,
    retry_backoff_max_ms=1_000,
)
ORDERS, OTHER = Uuid(b"o" * 16), Uuid(b"x" * 16)


def metadata(strategy: str = "rebootstrap", **options: Any) -> Metadata:
    settings = SimpleNamespace(**{**vars(SETTINGS), "metadata_recovery_strategy": strategy})
    return Metadata(settings, lambda limit: limit // 2, **options)


def partition(index: int, leader: int = 1, epoch: int = 5, error: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=epoch, error_code=error)


def topic(name: str, *partitions: MetadataResponsePartition, topic_id: Uuid = ORDERS, error: int = 0) -> MetadataResponseTopic:
    return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=list(partitions), error_code=error)


def response(*topics: MetadataResponseTopic, nodes: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=each, host=f"host-{each}", port=9092) for each in nodes]
    return MetadataResponse(brokers=brokers, topics=list(topics), cluster_id="c", controller_id=nodes[0] if nodes else -1)


def ask(machine: Metadata, now_ms: int) -> Request:
    (request,) = machine.step(now_ms)
    assert request.node == ANY_NODE
    return request


def answer(machine: Metadata, now_ms: int, *topics: MetadataResponseTopic, **options: Any) -> None:
    machine.answered(ask(machine, now_ms), response(*topics, **options), 13, now_ms)


def names(request: Request, version: int = 13) -> list[str] | None:
    assert request.adapt is not None
    message: Any = request.adapt(version)
    return None if message.topics is None else [each.name for each in message.topics]


def test_asks_at_the_start_and_then_only_when_it_is_old() -> None:
    machine = metadata()
    answer(machine, 0)
    assert machine.step(1_000) == []
    assert machine.next_deadline_ms() == 300_000
    assert names(ask(machine, 300_000)) == []


def test_one_request_is_in_flight_at_most() -> None:
    machine = metadata()
    ask(machine, 0)
    machine.refresh("a test")
    assert machine.step(10_000) == []
    assert machine.next_deadline_ms() == 300_001, "when it has waited too long for this one"


def test_a_new_topic_is_asked_for_at_once_and_alone() -> None:
    machine = metadata()
    machine.want(["known"])
    answer(machine, 0, topic("known", partition(0), topic_id=OTHER))
    machine.want(["orders"])
    assert machine.next_deadline_ms() == 0
    answer(machine, 1, topic("orders", partition(0)))
    assert machine.is_known(["known", "orders"])
    assert machine.step(1_000) == []


def test_a_topic_that_is_wanted_while_a_request_is_in_flight_is_asked_for_after_its_answer() -> None:
    machine = metadata()
    request = ask(machine, 0)
    machine.want(["orders"])
    assert machine.step(1) == []
    machine.answered(request, response(), 13, 2)
    assert names(ask(machine, 2)) == ["orders"]


def test_a_new_topic_waits_for_the_backoff_of_a_request_that_failed() -> None:
    machine = metadata()
    request = ask(machine, 0)
    machine.want(["orders"])
    machine.failed(request, NetworkError("no connection"), 10)
    machine.want(["payments"])
    assert machine.next_deadline_ms() == 110
    assert machine.step(109) == []
    assert names(ask(machine, 110)) == ["orders", "payments"]


def test_all_topics_are_asked_for_at_once_when_they_are_first_wanted() -> None:
    machine = metadata()
    answer(machine, 0)
    machine.want_all(True)
    assert names(ask(machine, 1)) is None


def test_a_new_topic_does_not_put_off_the_refresh_of_the_others() -> None:
    machine = metadata()
    answer(machine, 0)
    machine.refresh("a test")
    for now_ms in range(10, 100, 10):
        machine.want([f"new-{now_ms}"])
        answer(machine, now_ms, topic(f"new-{now_ms}", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert machine.next_deadline_ms() == 100
    assert len(names(ask(machine, 100)) or ()) == 9


def test_answers_about_new_topics_alone_do_not_make_the_rest_younger() -> None:
    machine = metadata()
    answer(machine, 0)
    machine.want(["orders"])
    answer(machine, 200_000, topic("orders", partition(0)))
    assert machine.full_responses == 1
    assert machine.responses == 2
    assert machine.next_deadline_ms() == 300_000


def test_a_refused_topic_is_not_hammered_however_often_it_is_wanted_again() -> None:
    machine = metadata()
    answer(machine, 0)
    asked = 0
    for now_ms in range(1, 10_001):
        machine.want(["orders"])
        for request in machine.step(now_ms):
            asked += 1
            refused = [topic(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for name in names(request) or ()]
            machine.answered(request, response(*refused), 13, now_ms)
        machine.unwant(["orders"])
        asked += len(found := machine.step(now_ms))
        for request in found:
            machine.answered(request, response(), 13, now_ms)
    assert asked <= 200, "more than two requests in each retry.backoff.ms"


def test_a_refused_topic_that_stays_wanted_is_asked_for_as_the_backoff_says() -> None:
    machine = metadata()
    machine.want(["orders"])
    times = []
    for now_ms in range(5_000):
        machine.want(["orders"])
        for request in machine.step(now_ms):
            times.append(now_ms)
            machine.answered(request, response(topic("orders", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), 13, now_ms)
    assert times == [0, 100, 300, 700, 1_500, 2_500, 3_500, 4_500]


def test_all_topics_are_asked_for_in_the_form_of_the_version() -> None:
    machine = metadata()
    machine.want_all(True)
    request = ask(machine, 0)
    assert names(request, 13) is None
    assert names(request, 0) == []


def test_auto_creation_is_asked_for_only_where_wanted() -> None:
    for auto_create in (False, True):
        request = ask(metadata(auto_create=auto_create), 0)
        assert request.adapt is not None
        message: Any = request.adapt(13)
        assert message.allow_auto_topic_creation is auto_create


def test_leaders_and_ids_are_known_after_an_answer() -> None:
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0, topic("orders", partition(1, leader=2), partition(0)))
    assert machine.leader("orders", 0) == (1, 5)
    assert machine.leader("orders", 1) == (2, 5)
    assert machine.leader("orders", 2) is None
    info = machine.topic_of_id(ORDERS)
    assert info is not None
    assert info.name == "orders"


def test_an_older_leader_epoch_does_not_replace_a_newer_one() -> None:
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0, topic("orders", partition(0, leader=2, epoch=7)))
    machine.refresh("a test")
    answer(machine, 1_000, topic("orders", partition(0, leader=1, epoch=6)))
    assert machine.leader("orders", 0) == (2, 7)


def test_a_topic_that_was_made_again_starts_over_with_its_epochs() -> None:
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0, topic("orders", partition(0, leader=2, epoch=7)))
    machine.refresh("a test")
    answer(machine, 1_000, topic("orders", partition(0, leader=1, epoch=0), topic_id=OTHER))
    assert machine.leader("orders", 0) == (1, 0)
    assert machine.topic_of_id(ORDERS) is None


def test_a_former_topic_id_is_ignored_and_the_topic_asked_for_again() -> None:
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0, topic("orders", partition(0, leader=2, epoch=7)))
    machine.refresh("a test")
    answer(machine, 1_000, topic("orders", partition(0, leader=1, epoch=0), topic_id=OTHER))
    machine.refresh("a test")
    answer(machine, 2_000, topic("orders", partition(0, leader=2, epoch=8)))
    assert (machine.topic_of_id(ORDERS), machine.leader("orders", 0)) == (None, (1, 0))
    error = machine.topic_error("orders")
    assert error is not None
    assert error.is_retriable
    assert machine.next_deadline_ms() == 2_100
    answer(machine, 2_100, topic("orders", partition(0, leader=2, epoch=1), topic_id=OTHER))
    assert machine.topic_error("orders") is None
    assert machine.leader("orders", 0) == (2, 1)


def test_a_former_topic_id_is_ignored_also_if_the_topic_was_gone_meanwhile() -> None:
    machine = metadata()
    machine.want(["orders"])
    gone = topic("orders", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for entry, expected in (
        (topic("orders", partition(0)), ORDERS),
        (gone, None),
        (topic("orders", partition(0)), ORDERS),
        (gone, None),
        (topic("orders", partition(0), topic_id=OTHER), OTHER),
        (topic("orders", partition(0)), OTHER),
        (gone, None),
        (topic("orders", partition(0)), None),
        (topic("orders", partition(0), topic_id=OTHER), OTHER),
    ):
        machine.refresh("a test")
        answer(machine, machine.next_deadline_ms() or 0, entry)
        info = machine.topic("orders")
        assert (None if info is None else info.id) == expected


def test_a_former_topic_id_that_stays_is_taken() -> None:
    """The client may have met the ids in the wrong order: it must not stay with an id that the cluster no longer has."""
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0, topic("orders", partition(0)))
    machine.refresh("a test")
    answer(machine, 1_000, topic("orders", partition(0), topic_id=OTHER))
    machine.refresh("a test")
    times = [2_000]
    answer(machine, 2_000, topic("orders", partition(0)))
    while machine.topic_of_id(ORDERS) is None:
        times.append(machine.next_deadline_ms() or 0)
        answer(machine, times[-1], topic("orders", partition(0)))
    assert machine.topic_of_id(OTHER) is None
    assert machine.topic_error("orders") is None
    assert times == [2_000, 2_100, 2_300, 2_700, 3_500, 4_500, 5_500, 6_500, 7_500]


def test_a_topic_that_is_gone_is_an_error_and_is_asked_for_again() -> None:
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0, topic("orders", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    error = machine.topic_error("orders")
    assert error is not None
    assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "orders" in str(error)
    assert names(ask(machine, 200)) == ["orders"]


def test_a_failure_is_followed_by_growing_waits() -> None:
    machine = metadata()
    waits, now_ms = [], 0
    for _ in range(5):
        request = ask(machine, now_ms)
        machine.failed(request, NetworkError("no connection"), now_ms)
        deadline_ms = machine.next_deadline_ms()
        assert deadline_ms is not None
        waits.append(deadline_ms - now_ms)
        now_ms = deadline_ms
    assert waits == [100, 200, 400, 800, 1_000]
    assert machine.failure is not None


def test_a_leader_hint_counts_if_its_epoch_is_newer_and_its_node_known() -> None:
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0, topic("orders", partition(0)))
    assert not machine.learn_leader("orders", 0, 2, 5)
    assert not machine.learn_leader("orders", 0, 9, 6)
    assert machine.learn_leader("orders", 0, 9, 6, [Node(9, "host-9", 9092)])
    assert machine.leader("orders", 0) == (9, 6)


def test_topics_that_are_not_used_for_long_are_dropped() -> None:
    machine = metadata(idle_max_ms=300_000)
    machine.want(["old", "new"], 0)
    answer(machine, 0, topic("old", partition(0)), topic("new", partition(0), topic_id=OTHER))
    machine.want(["new"], 300_000)
    assert names(ask(machine, 300_001)) == ["new"]
    assert machine.topic("old") is None


def test_an_answer_with_a_gap_in_its_partitions_is_not_taken_over() -> None:
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0, topic("orders", partition(0), partition(2)))
    assert machine.topic("orders") is None


def test_an_answer_without_brokers_is_retried_and_forgets_nothing() -> None:
    machine = metadata()
    answer(machine, 0)
    machine.refresh("a test")
    answer(machine, 1_000, nodes=())
    assert set(machine.nodes) == {1, 2}
    assert machine.failure is not None
    assert machine.failure.is_retriable
    assert machine.next_deadline_ms() == 1_100


def test_a_topic_that_an_answer_leaves_out_is_asked_for_again() -> None:
    machine = metadata()
    machine.want(["orders"])
    answer(machine, 0)
    error = machine.topic_error("orders")
    assert error is not None
    assert error.is_retriable
    assert machine.next_deadline_ms() == 100
    answer(machine, 100, topic("orders", partition(0)))
    assert machine.topic_error("orders") is None


def test_an_error_code_of_the_whole_answer_is_retried() -> None:
    machine = metadata()
    request = ask(machine, 0)
    failed = response()
    failed.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    machine.answered(request, failed, 13, 0)
    assert machine.failure is not None
    assert machine.next_deadline_ms() == 100


def refuse(machine: Metadata, now_ms: int) -> None:
    refusal = response()
    refusal.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    machine.answered(ask(machine, now_ms), refusal, 13, now_ms)


def known_cluster(strategy: str = "rebootstrap") -> Metadata:
    machine = metadata(strategy)
    machine.want(["orders"])
    answer(machine, 0, topic("orders", partition(0)))
    machine.refresh("a test")
    return machine


def test_all_nodes_are_forgotten_when_the_cluster_requires_a_rebootstrap() -> None:
    machine = known_cluster()
    refuse(machine, 1_000)
    assert isinstance(machine.failure, NetworkError), "calls that wait go on waiting"
    assert machine.next_deadline_ms() == 0
    (order,) = machine.step(1_000)
    assert isinstance(order, Rebootstrap)
    assert "REBOOTSTRAP_REQUIRED" in order.reason
    machine.answered(order, None, 0, 1_000)
    assert machine.nodes == {}
    assert machine.leader("orders", 0) is None
    assert machine.step(1_050) == [], "a cluster that always refuses is not asked without end"
    answer(machine, 1_100, topic("orders", partition(0, leader=3, epoch=6)), nodes=(3,))
    assert machine.leader("orders", 0) == (3, 6)
    assert machine.failure is None


def test_a_required_rebootstrap_is_an_error_with_strategy_none() -> None:
    machine = known_cluster("none")
    refuse(machine, 1_000)
    assert isinstance(machine.failure, RebootstrapRequiredError)
    assert list(machine.nodes) == [1, 2]
    assert machine.next_deadline_ms() == 1_100
    answer(machine, 1_100, topic("orders", partition(0)))
    assert machine.failure is None


def test_a_rebootstrap_is_due_when_no_metadata_came_for_the_trigger_time() -> None:
    machine = known_cluster()
    request = ask(machine, 1_000)
    machine.failed(request, NetworkError("lost"), 250_000)
    hanging = ask(machine, 250_100)
    assert machine.next_deadline_ms() == 301_001, "counted from the first request"
    assert machine.step(301_000) == []
    (order,) = machine.step(301_001)
    assert isinstance(order, Rebootstrap)
    assert "metadata.recovery.rebootstrap.trigger.ms" in order.reason
    assert machine.nodes == {}
    machine.failed(hanging, NetworkError("closed on this side"), 301_001)
    ask(machine, 301_301)
    assert machine.next_deadline_ms() == 601_002, "the time starts over"


def test_the_trigger_time_starts_over_with_each_success() -> None:
    machine = known_cluster()
    answer(machine, 1_000, topic("orders", partition(0)))
    machine.refresh("a test")
    ask(machine, 300_900)
    assert machine.next_deadline_ms() == 600_901


def test_no_rebootstrap_is_due_with_strategy_none() -> None:
    machine = known_cluster("none")
    ask(machine, 1_000)
    assert machine.next_deadline_ms() is None
    assert machine.step(10_000_000) == []


@given(st.lists(st.tuples(st.sampled_from([ORDERS, OTHER]), st.integers(0, 20), st.integers(1, 2), st.booleans()), max_size=30))
def test_a_leader_epoch_never_falls_while_the_topic_is_the_same(steps: list[tuple[Uuid, int, int, bool]]) -> None:
    machine = metadata()
    machine.want(["orders"])
    now_ms, known = 0, None
    for topic_id, epoch, leader, is_hint in steps:
        now_ms += 10_000
        if is_hint:
            machine.learn_leader("orders", 0, leader, epoch)
        else:
            machine.refresh("a test")
            answer(machine, now_ms, topic("orders", partition(0, leader, epoch), topic_id=topic_id))
        info = machine.topic("orders")
        if info is not None:
            if known is not None and known[0] == info.id:
                assert info.partitions[0].leader_epoch >= known[1]
            known = (info.id, info.partitions[0].leader_epoch)


def test_a_borrowed_topic_stays_if_another_wants_it() -> None:
    machine = metadata()
    machine.want(["before"])
    machine.borrow(["before", "during", "orders"])
    answer(machine, 0, topic("before", partition(0)), topic("during", partition(0)), topic("orders", partition(0)))
    machine.want(["during"])
    machine.give_back(["before", "during", "orders"])
    assert (machine.is_known(["before", "during"]), machine.topic("orders")) == (True, None)
    machine.give_back(["before", "during"])
    assert names(ask(machine, 400_000)) == ["before", "during"]


# When a rebootstrap is due: by time without metadata, or because the cluster asks for it.


def recovery(strategy: str = "rebootstrap", trigger_ms: int = 1_000) -> Recovery:
    return Recovery(SimpleNamespace(metadata_recovery_strategy=strategy, metadata_recovery_rebootstrap_trigger_ms=trigger_ms))


def test_time_counts_from_the_first_request_after_the_last_success() -> None:
    counted = recovery()
    assert counted.due_ms() is None
    counted.asked(500)
    counted.asked(900)
    assert counted.due_ms() == 1_501
    assert counted.begin(1_500) is None
    counted.succeeded()
    assert counted.due_ms() is None
    counted.asked(2_000)
    assert counted.begin(3_001) is not None
    assert counted.due_ms() == 4_002, "it starts over with a rebootstrap"


def test_the_cluster_asks_for_one_at_once() -> None:
    counted = recovery()
    error = counted.required()
    assert isinstance(error, NetworkError)
    assert error.is_retriable
    assert counted.due_ms() == 0
    assert "REBOOTSTRAP_REQUIRED" in (counted.begin(10) or "")
    assert counted.begin(11) is None, "once"


def test_strategy_none_allows_neither() -> None:
    counted = recovery("none")
    counted.asked(0)
    error = counted.required()
    assert isinstance(error, RebootstrapRequiredError)
    assert not error.is_retriable
    assert "metadata.recovery.strategy=none" in str(error)
    assert counted.due_ms() is None
    assert counted.begin(10_000_000) is None
