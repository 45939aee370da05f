"""The cases of the coordinators' sweep about offset commits within transactions."""

from collections.abc import Iterator

from tests.support.sweep.cases import every_version
from tests.support.sweep.offset_cases import OffsetCases
from tests.support.sweep.story import Story
from tests.support.sweep.sweep import Case

from ottla.wire.apis import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

IMPLICIT_ADD_SINCE = 5
MEMBERS_SINCE = 3
NOBODY = 999_999
"""A producer id that no server has allocated."""


def transaction_cases(offsets: OffsetCases, story: Story) -> Iterator[Case]:
    """One transaction per version: begin, commit offsets, fetch them, end."""
    for version in range(6):
        yield from _one_transaction(offsets, story, version)
    refusals = {
        "commit with a transaction that is not there": lambda _: _request(NOBODY, 0, "no such", "g", ("sweep", 0)),
        "commit, unknown": lambda _: _request(NOBODY, 0, "no such", "g", ("absent", 0)),
        "commit without a group": lambda _: _request(NOBODY, 0, "no such", "", ("sweep", 0)),
        "commit of nothing": lambda _: _request(NOBODY, 0, "no such", "g"),
    }
    for name, make in refusals.items():
        yield from every_version(name, ApiKey.TXN_OFFSET_COMMIT, make)


def _request(
    producer_id: int, producer_epoch: int, transactional_id: str, group_id: str, *partitions: tuple[str, int], **extra: object
) -> TxnOffsetCommitRequest:
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        **extra,  # type: ignore[arg-type]  # checked where it is sent
    )
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for name, index in partitions:
        part = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=50, committed_metadata="in")
        topics.setdefault(name, TxnOffsetCommitRequestTopic(name=name)).partitions.append(part)
    request.topics = list(topics.values())
    return request


def _one_transaction(offsets: OffsetCases, story: Story, version: int) -> Iterator[Case]:
    name, group_id = f"x{version}", f"in{version}"
    commits, fetches = "TxnOffsetCommit", "OffsetFetch"

    def commit(*partitions: tuple[str, int], epoch: int = 0, **extra: object) -> TxnOffsetCommitRequest:
        return _request(story.producer_id, story.producer_epoch + epoch, name, group_id, *partitions, **extra)

    def not_begun() -> Message:
        story.begin_transaction(name)
        return commit(("sweep", 0))

    def begun() -> Message:
        if version < IMPLICIT_ADD_SINCE:
            story.begin_transaction(name, group_id)
        return commit(("sweep", 0), ("sweep", 9), ("absent", 0))

    def ended(is_commit: bool) -> Message:
        story.end_transaction(name, is_commit, 5 if version >= IMPLICIT_ADD_SINCE else 3, group_id)
        return offsets.fetch(8, group_id, True, sweep=[0, 1])

    yield Case(f"{commits}: commit before the transaction has begun", version, not_begun)
    yield Case(f"{commits}: commit", version, begun)
    yield Case(f"{commits}: commit again", version, lambda: commit(("sweep", 1)))
    yield Case(f"{commits}: commit in a later epoch", version, lambda: commit(("sweep", 1), epoch=1))
    yield Case(f"{commits}: commit in an old epoch", version, lambda: commit(("sweep", 1), epoch=-1))
    if version >= MEMBERS_SINCE:
        yield Case(f"{commits}: commit as a member", version, lambda: commit(("sweep", 1), generation_id=4, member_id="m"))
    yield Case(f"{fetches}: fetch of a transaction {version}", 8, lambda: offsets.fetch(8, group_id, True, sweep=[0, 1]))
    yield Case(f"{fetches}: fetch of a transaction {version}, unstable", 8, lambda: offsets.fetch(8, group_id, sweep=[0, 1]))
    yield Case(f"{fetches}: fetch all of a transaction {version}", 8, lambda: offsets.fetch_all(8, group_id, True))
    yield Case(f"{fetches}: fetch after the end of {version}", 8, lambda: ended(True))
    yield Case(f"{commits}: commit after the end", version, lambda: commit(("sweep", 1)))
