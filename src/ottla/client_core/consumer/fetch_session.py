"""`FetchSession`: the incremental fetch session with one broker (KIP-227).

The broker remembers the partitions of a session: a request carries only what changed, and a response only what has news. Any
doubt about what the broker remembers (a lost connection, a session error) ends the session, and the next request is a full one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.fetch import FetchPartition, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
"""The broker forgets the session."""
_EPOCH_MAX: Final = 0x7FFFFFFF

SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class Wanted(NamedTuple):
    """What a fetch asks of one partition."""

    topic_id: Uuid
    offset: int
    leader_epoch: int
    bytes_max: int


class SessionRequest(NamedTuple):
    """The parts of a Fetch request that the session decides."""

    session_id: int
    epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FetchSession:
    """What one broker remembers, as far as this side knows."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request names every partition."""
        return self._epoch == FIRST_EPOCH

    def request(self, wanted: Mapping[TopicPartition, Wanted]) -> SessionRequest:
        """The next request, for exactly these partitions."""
        if self.is_full:
            self._known = dict(wanted)
            return SessionRequest(self._id, FIRST_EPOCH, _topics(wanted), [])
        known = self._known
        changed = {each: spec for each, spec in wanted.items() if known.get(each) != spec}
        # A topic id that changed is another topic: the broker must forget the old one.
        gone = [each for each, spec in known.items() if each not in wanted or wanted[each].topic_id != spec.topic_id]
        forgotten: dict[tuple[str, Uuid], ForgottenTopic] = {}
        for each in gone:
            key = (each.topic, known[each].topic_id)
            if key not in forgotten:
                forgotten[key] = ForgottenTopic(topic=each.topic, topic_id=key[1])
            forgotten[key].partitions.append(each.partition)
        self._known = dict(wanted)
        return SessionRequest(self._id, self._epoch, _topics(changed), list(forgotten.values()))

    def answered(self, response: FetchResponse) -> bool:
        """Take over the broker's answer. False: it says that the session is not valid, and the answer holds nothing."""
        if response.error_code:
            # Where the broker has lost the session there is none to close.
            is_gone = response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._restart(NO_SESSION if is_gone else self._id)
            return False
        if response.session_id == NO_SESSION:
            self._restart(NO_SESSION)  # the broker keeps no session for this client now
        else:
            self._id = response.session_id
            self._epoch = self._epoch + 1 if self._epoch < _EPOCH_MAX else 1
        return True

    def close(self) -> int:
        """The id of the session to close; `NO_SESSION`: the broker keeps none, as far as is known."""
        session_id = NO_SESSION if self.is_full else self._id
        self._restart(NO_SESSION)
        return session_id

    def failed(self) -> None:
        """It is not known what the broker has seen: close the session with the next request and open another."""
        self._restart(self._id)

    def _restart(self, session_id: int) -> None:
        self._id = session_id
        self._epoch = FIRST_EPOCH
        self._known = {}


def _topics(wanted: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    found: dict[tuple[str, Uuid], FetchTopic] = {}
    for each, spec in wanted.items():
        topic = found.get((each.topic, spec.topic_id))
        if topic is None:
            topic = found[each.topic, spec.topic_id] = FetchTopic(topic=each.topic, topic_id=spec.topic_id)
        topic.partitions.append(
            FetchPartition(
                partition=each.partition,
                current_leader_epoch=spec.leader_epoch,
                fetch_offset=spec.offset,
                partition_max_bytes=spec.bytes_max,
            )
        )
    return list(found.values())
