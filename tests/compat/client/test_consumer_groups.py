"""Ottla's consumers as members of groups, with both protocols: sharing, rebalances, patterns, new partitions."""

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.support.peers.group_members import MemberOptions, Members, all_of, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_leaders, make_topic

from ottla import Admin, Producer

LIBRARIES = pytest.mark.parametrize("library", ["ottla", "ottla-aio"])
PROTOCOLS = pytest.mark.parametrize("protocol", ["eager", "cooperative", "consumer"])
WAIT_S = 60


@LIBRARIES
@PROTOCOLS
def test_second_member_joins_and_leaves(bootstrap: str, members: Members, topic: str, library: str, protocol: str) -> None:
    make_topic(bootstrap, topic, 4)
    everything = all_of(topic, 4)
    options = MemberOptions(topic, topics=(topic,), protocol=protocol)
    first = members.open(library, bootstrap, options)
    sent = send_numbers(bootstrap, topic, 4, 0, 40)
    await_shared([first], everything)
    await_values([first], sent)
    second = members.open(library, bootstrap, options)
    await_shared([first, second], everything)
    assert len(first.assignment) == len(second.assignment) == 2
    assert (first.taken_away == everything) == (protocol == "eager")
    sent += send_numbers(bootstrap, topic, 4, 40, 40)
    await_values([first, second], sent)
    second.close()
    await_shared([first], everything)
    sent += send_numbers(bootstrap, topic, 4, 80, 40)
    await_values([first, second], sent)
    assert sorted([*first.values, *second.values]) == sorted(sent)


@PROTOCOLS
def test_every_record_is_read_once_in_rebalances_under_load(
    bootstrap: str, members: Members, topic: str, protocol: str
) -> None:
    make_topic(bootstrap, topic, 4)
    everything = all_of(topic, 4)
    options = MemberOptions(topic, topics=(topic,), protocol=protocol)
    everyone = [members.open("ottla", bootstrap, options)]
    with sending(bootstrap, topic) as sent:
        for library in ("ottla-aio", "ottla"):
            await_shared(everyone, everything)
            everyone.append(members.open(library, bootstrap, options))
        await_shared(everyone, everything)
        everyone[0].close()
        await_shared(everyone[1:], everything)
        everyone[1].close()
        await_shared(everyone[2:], everything)
    await_values(everyone, sent)
    assert Counter(value for member in everyone for value in member.values) == Counter(sent)


@contextmanager
def sending(bootstrap: str, topic: str) -> Iterator[list[str]]:
    """A producer that sends numbers, one each millisecond at most, until the block ends; yields what it has sent."""
    sent: list[str] = []
    is_over = threading.Event()

    def run() -> None:
        with Producer(bootstrap) as producer:
            while not is_over.wait(0.001):
                producer.send(topic, b"%d" % len(sent), b"%d" % (len(sent) % 50))
                sent.append(str(len(sent)))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield sent
    finally:
        is_over.set()
        thread.join()


@LIBRARIES
@PROTOCOLS
def test_pattern_and_new_topics(bootstrap: str, members: Members, topic: str, library: str, protocol: str) -> None:
    make_topic(bootstrap, f"{topic}-a", 2)
    member = members.open(library, bootstrap, MemberOptions(topic, pattern=f"{re.escape(topic)}-.*", protocol=protocol))
    await_shared([member], all_of(f"{topic}-a", 2))
    make_topic(bootstrap, f"{topic}-b", 2)
    await_shared([member], all_of(f"{topic}-a", 2) | all_of(f"{topic}-b", 2))


@LIBRARIES
@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
def test_new_partitions_are_noticed(bootstrap: str, members: Members, topic: str, library: str, protocol: str) -> None:
    make_topic(bootstrap, topic, 2)
    member = members.open(library, bootstrap, MemberOptions(topic, topics=(topic,), protocol=protocol))
    await_shared([member], all_of(topic, 2))
    with Admin(bootstrap) as admin:
        assert not admin.create_partitions({topic: 4}).errors
    await_leaders(bootstrap, topic, 4)
    sent = send_numbers(bootstrap, topic, 4, 0, 20)
    await_shared([member], all_of(topic, 4))
    await_values([member], sent)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_are_kept_between_members(bootstrap: str, face: Faces, topic: str, protocol: str) -> None:
    make_topic(bootstrap, topic)
    send_numbers(bootstrap, topic, 1, 0, 20)
    found: list[Any] = []
    for _ in range(2):
        with face.consumer(bootstrap, group_id=topic, auto_offset_reset="earliest", group_protocol=protocol) as consumer:
            consumer.subscribe(topic)
            goal = len(found) + 10
            while len(found) < goal:
                found += consumer.poll(WAIT_S, max_records=goal - len(found))
            assert consumer.group_metadata().member_id
            assert consumer.subscription() == {topic}
    assert [int(record.value) for record in found] == list(range(20))


def test_static_member_keeps_its_partitions(bootstrap: str, face: Faces, topic: str) -> None:
    make_topic(bootstrap, topic, 2)
    other = face.consumer(bootstrap, group_id=topic, group_instance_id="other")
    seen: list[Any] = []
    revoked: list[Any] = []
    other.subscribe([topic], on_revoked=revoked.append)
    for _ in range(2):
        consumer = face.consumer(bootstrap, group_id=topic, group_instance_id="one")
        consumer.subscribe([topic])
        while len(consumer.assignment()) != 1 or len(other.assignment()) != 1:
            consumer.poll(0.05)
            other.poll(0.05)
        if not seen:
            revoked.clear()  # for the first one the other gave a partition up
        seen.append((consumer.assignment(), consumer.group_metadata().generation_id))
        consumer.close()  # stays in the group
    assert seen[0] == seen[1]
    assert revoked == []
