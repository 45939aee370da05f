"""The fetch session: what each request names, and after which answers the next one is a full one."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.machines.consumer_cluster import place

from ottla.client_core.consumer.fetch_session import FetchSession, SessionRequest, Wanted
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.fetch import FetchResponse

TOPIC_ID, OTHER_ID = Uuid(b"t" * 16), Uuid(b"x" * 16)
EPOCH_MAX = 0x7FFFFFFF


def wanted(offset: int, topic_id: Uuid = TOPIC_ID) -> Wanted:
    return Wanted(topic_id, offset, 4, 1_000)


def named(request: SessionRequest) -> dict[int, int]:
    """The offsets that a request asks for, by partition."""
    return {data.partition: data.fetch_offset for topic in request.topics for data in topic.partitions}


def forgotten(request: SessionRequest) -> list[tuple[Uuid, list[int]]]:
    return [(topic.topic_id, topic.partitions) for topic in request.forgotten]


def opened(partitions: dict[TopicPartition, Wanted], session_id: int = 9) -> FetchSession:
    session = FetchSession()
    assert session.request(partitions).epoch == 0
    assert session.answered(FetchResponse(session_id=session_id))
    return session


def test_the_first_request_names_everything_and_opens_a_session() -> None:
    session = FetchSession()
    request = session.request({place(0): wanted(5), place(1): wanted(7)})
    assert (request.session_id, request.epoch, named(request), request.forgotten) == (0, 0, {0: 5, 1: 7}, [])
    (topic,) = request.topics
    assert (topic.topic, topic.topic_id) == ("t", TOPIC_ID)
    assert [(data.current_leader_epoch, data.partition_max_bytes) for data in topic.partitions] == [(4, 1_000)] * 2


def test_a_later_request_names_only_what_changed() -> None:
    session = opened({place(0): wanted(5), place(1): wanted(7)})
    request = session.request({place(0): wanted(6), place(1): wanted(7), place(2): wanted(0)})
    assert (request.session_id, request.epoch, named(request), request.forgotten) == (9, 1, {0: 6, 2: 0}, [])
    session.answered(FetchResponse(session_id=9))
    same = session.request({place(0): wanted(6), place(1): wanted(7), place(2): wanted(0)})
    assert same == SessionRequest(9, 2, [], [])


def test_an_open_session_can_be_closed_once() -> None:
    session = opened({place(0): wanted(5)})
    assert session.close() == 9
    assert session.close() == 0
    assert session.request({place(0): wanted(5)}) == FetchSession().request({place(0): wanted(5)})


def test_a_session_in_doubt_is_not_closed() -> None:
    session = opened({place(0): wanted(5)})
    session.failed()
    assert session.close() == 0


def test_a_partition_that_is_no_longer_wanted_is_forgotten() -> None:
    session = opened({place(0): wanted(5), place(1): wanted(7)})
    request = session.request({place(1): wanted(7)})
    assert (named(request), forgotten(request)) == ({}, [(TOPIC_ID, [0])])


def test_a_topic_that_was_made_again_is_forgotten_by_its_old_id() -> None:
    session = opened({place(0): wanted(5)})
    request = session.request({place(0): wanted(5, OTHER_ID)})
    assert forgotten(request) == [(TOPIC_ID, [0])]
    assert [(topic.topic_id, named(request)) for topic in request.topics] == [(OTHER_ID, {0: 5})]


def test_a_session_that_the_broker_lost_is_opened_again_without_an_id() -> None:
    session = opened({place(0): wanted(5)})
    session.request({place(0): wanted(5)})
    assert not session.answered(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    request = session.request({place(0): wanted(5)})
    assert (request.session_id, request.epoch, named(request)) == (0, 0, {0: 5})


def test_a_session_in_doubt_is_closed_by_the_next_full_request() -> None:
    for is_refused in (False, True):
        session = opened({place(0): wanted(5)})
        session.request({place(0): wanted(5)})
        if is_refused:
            assert not session.answered(FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH))
        else:
            session.failed()
        request = session.request({place(0): wanted(5)})
        assert (request.session_id, request.epoch, named(request)) == (9, 0, {0: 5})


def test_a_broker_that_keeps_no_session_gets_full_requests() -> None:
    session = opened({place(0): wanted(5)}, session_id=0)
    assert session.is_full
    assert named(session.request({place(0): wanted(5)})) == {0: 5}


def test_the_epoch_after_the_largest_is_one() -> None:
    session = opened({})
    session._epoch = EPOCH_MAX
    session.answered(FetchResponse(session_id=9))
    assert session.request({}).epoch == 1


partition_sets = st.dictionaries(
    st.integers(0, 3), st.tuples(st.integers(0, 2), st.sampled_from([TOPIC_ID, OTHER_ID])), max_size=4
)
outcomes = st.sampled_from(["answered", "lost before", "lost after"])


@given(st.lists(st.tuples(partition_sets, outcomes), max_size=12))
def test_the_broker_always_remembers_exactly_what_is_wanted(rounds: list[tuple[dict[int, tuple[int, Uuid]], str]]) -> None:
    session = FetchSession()
    remembered: dict[tuple[Uuid, int], int] = {}
    for partitions, outcome in rounds:
        request = session.request({place(index): wanted(*each) for index, each in partitions.items()})
        if outcome == "lost before":
            session.failed()
            continue
        if request.epoch == 0:
            remembered.clear()
        for topic in request.forgotten:
            for index in topic.partitions:
                del remembered[topic.topic_id, index]
        for asked in request.topics:
            remembered.update({(asked.topic_id, data.partition): data.fetch_offset for data in asked.partitions})
        if outcome == "lost after":
            session.failed()
            continue
        assert remembered == {(topic_id, index): offset for index, (offset, topic_id) in partitions.items()}
        session.answered(FetchResponse(session_id=9))
