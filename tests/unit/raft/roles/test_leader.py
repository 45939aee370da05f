"""The high watermark, progress and check-quorum of a leader."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.raft.replicas import THREE, key

from ottla.raft.roles.leader import Leader, Progress
from ottla.raft.voters import ReplicaKey, Voter, VoterSet

ME, OTHER, THIRD = key(1), key(2), key(3)
DYNAMIC = VoterSet(Voter(each, {}) for each in (ME, OTHER, THIRD))


def leading(epoch_start_offset: int) -> Leader:
    return Leader(3, ME, epoch_start_offset, (ME,))


def test_records_are_committed_once_a_majority_has_synced_them() -> None:
    leader = leading(10).synced(20, DYNAMIC)
    assert leader.high_watermark is None
    leader = leader.fetched(OTHER, 10, 20, 0, DYNAMIC)
    assert leader.high_watermark is None, "older records are not counted before one of this epoch is everywhere"
    assert leader.fetched(OTHER, 15, 20, 0, DYNAMIC).high_watermark == 15
    assert leader.fetched(ReplicaKey(2, key(9).directory_id), 15, 20, 0, DYNAMIC).high_watermark is None, "another directory"
    assert leading(10).synced(20, THREE).fetched(OTHER, 15, 20, 0, THREE).high_watermark == 15, (
        "static voters have no directory"
    )


@given(st.lists(st.tuples(st.sampled_from([ME, OTHER, THIRD]), st.integers(0, 50)), max_size=30))
def test_high_watermark_follows_a_majority_and_never_goes_back(reports: list[tuple[ReplicaKey, int]]) -> None:
    leader, ends, before = leading(5), dict.fromkeys([ME, OTHER, THIRD], 0), -1
    for replica, offset in reports:
        ends[replica] = max(ends[replica], offset)
        others = leader.fetched(replica, ends[replica], 50, 0, DYNAMIC)
        leader = leader.synced(offset, DYNAMIC) if replica == ME else others
        mark = -1 if leader.high_watermark is None else leader.high_watermark
        assert mark >= before
        assert mark <= sorted(ends.values())[1]
        assert mark == -1 or mark > 5
        before = mark


def test_caught_up_times() -> None:
    progress = Progress().fetched(5, 10, 100)
    assert (progress.last_fetch_ms, progress.last_caught_up_ms) == (100, -1)
    progress = progress.fetched(10, 12, 200)
    assert progress.last_caught_up_ms == 100, "it has what the leader had then"
    assert progress.fetched(12, 12, 300).last_caught_up_ms == 300


def test_majority_of_fetches_starts_the_check_again() -> None:
    five = VoterSet(Voter(key(each), {}) for each in range(1, 6))
    leader = leading(0)._replace(check_quorum_deadline_ms=100)
    leader = leader.heard_from(key(2), five, 50, 100)
    assert leader.check_quorum_deadline_ms == 100
    leader = leader.heard_from(key(2), five, 60, 100).heard_from(key(9), five, 60, 100)
    assert leader.check_quorum_deadline_ms == 100
    assert leader.heard_from(key(4), five, 70, 100).check_quorum_deadline_ms == 170


def test_successors_have_the_longest_logs_first() -> None:
    leader = leading(0).fetched(OTHER, 5, 9, 0, DYNAMIC).fetched(THIRD, 7, 9, 0, DYNAMIC)
    assert leader.successors(DYNAMIC) == (THIRD, OTHER)


def test_silent_observers_are_dropped() -> None:
    observer = key(8)
    leader = leading(0).fetched(observer, 5, 9, 0, DYNAMIC)
    assert observer in leader.progress
    assert observer not in leader.fetched(OTHER, 5, 9, 300_001, DYNAMIC).progress
