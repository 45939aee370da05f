"""Incremental fetch sessions: requests contain only changes, and the broker's view stays complete."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.cli.consume.session import FetchSession, PartitionFetch
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

ID = Uuid(b"0123456789abcdef")
A, B = TopicPartition("a", 0), TopicPartition("a", 1)


def wanted(offset: int) -> PartitionFetch:
    return PartitionFetch(ID, offset, 0, 1000)


def sent(request: FetchRequest) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.topic, each.partition): each.fetch_offset for topic in request.topics for each in topic.partitions
    }


def forgotten(request: FetchRequest) -> list[TopicPartition]:
    return [TopicPartition(topic.topic, each) for topic in request.forgotten_topics_data for each in topic.partitions]


def test_later_requests_contain_only_changes() -> None:
    session = FetchSession()
    request = FetchRequest()
    session.fill(request, {A: wanted(0), B: wanted(0)})
    assert (request.session_id, request.session_epoch, sent(request)) == (0, 0, {A: 0, B: 0})
    session.answered(FetchResponse(session_id=9))
    session.fill(request, {A: wanted(5), B: wanted(0)})
    assert (request.session_id, request.session_epoch, sent(request), forgotten(request)) == (9, 1, {A: 5}, [])
    session.answered(FetchResponse(session_id=9))
    session.fill(request, {B: wanted(0)})
    assert (request.session_epoch, sent(request), forgotten(request)) == (2, {}, [A])


def test_every_request_is_full_when_no_session_is_granted() -> None:
    session = FetchSession()
    for _ in range(3):
        request = FetchRequest()
        session.fill(request, {A: wanted(0)})
        assert (request.session_id, request.session_epoch, sent(request)) == (0, 0, {A: 0})
        session.answered(FetchResponse(session_id=0))


def test_epoch_wraps_to_one() -> None:
    session = FetchSession()
    session.id, session.epoch = 9, 0x7FFFFFFF
    session.answered(FetchResponse(session_id=9))
    assert session.epoch == 1


class BrokerBeside(RuleBasedStateMachine):
    """A model of the broker's session, which must always equal what the client wants."""

    def __init__(self) -> None:
        super().__init__()
        self.session = FetchSession()
        self.wanted: dict[TopicPartition, PartitionFetch] = {}
        self.known: dict[TopicPartition, int] | None = None
        self.id = self.epoch = 0

    @rule(partition=st.integers(0, 3), offset=st.integers(0, 3))
    def move(self, partition: int, offset: int) -> None:
        self.wanted[TopicPartition("a", partition)] = wanted(offset)

    @rule(partition=st.integers(0, 3))
    def give_up(self, partition: int) -> None:
        self.wanted.pop(TopicPartition("a", partition), None)

    @rule(keeps=st.booleans())
    def fetch(self, keeps: bool) -> None:
        request = FetchRequest()
        self.session.fill(request, self.wanted)
        if request.session_epoch == 0:
            self.known = sent(request)
            self.id, self.epoch = (self.id + 1, 1) if keeps else (0, 0)
        else:
            assert (request.session_id, request.session_epoch) == (self.id, self.epoch)
            assert self.known is not None
            for gone in forgotten(request):
                del self.known[gone]
            self.known |= sent(request)
            self.epoch += 1
        assert self.known == {partition: each.offset for partition, each in self.wanted.items()}
        self.session.answered(FetchResponse(session_id=self.id))

    @rule()
    def fail(self) -> None:
        self.session.restart()

    @invariant()
    def numbers_go_together(self) -> None:
        assert (self.session.id == 0) == (self.session.epoch == 0)


BrokerBeside.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestBrokerBeside = BrokerBeside.TestCase
