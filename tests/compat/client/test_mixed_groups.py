"""Ottla's consumers in one group with members of other libraries: one owner per partition, every record read."""

import pytest
from tests.support.peers.group_members import Member, MemberOptions, Members, all_of, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import make_topic

PARTITIONS = 6
BY_KAFKAS_NAME = {"roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor"}
PROTOCOLS = ("eager", "roundrobin", "cooperative", "consumer")
MIXED = [("ottla", "confluent"), ("confluent", "ottla-aio"), ("ottla", "java"), ("java", "ottla-aio")]
"""The first library's member joins first, so it leads a classic group until it leaves."""
SHORT = {("java", "ottla-aio", "consumer")}
"""The case with Java that every run has; the others are slow."""
CASES = [
    pytest.param(
        libraries,
        protocol,
        marks=[pytest.mark.slow] if "java" in libraries and (*libraries, protocol) not in SHORT else [],
        id="-".join((*libraries, protocol)),
    )
    for libraries in MIXED
    for protocol in PROTOCOLS
]


def options_for(library: str, group: str, protocol: str) -> MemberOptions:
    if protocol != "roundrobin":
        return MemberOptions(group, topics=(group,), protocol=protocol)
    name = BY_KAFKAS_NAME[protocol] if library == "java" else protocol
    return MemberOptions(group, topics=(group,), more={"partition.assignment.strategy": name})


@pytest.mark.parametrize(("libraries", "protocol"), CASES)
def test_members_come_and_go(bootstrap: str, members: Members, topic: str, libraries: tuple[str, str], protocol: str) -> None:
    make_topic(bootstrap, topic, PARTITIONS)
    everything = all_of(topic, PARTITIONS)

    def join(library: str) -> Member:
        return members.open(library, bootstrap, options_for(library, topic, protocol))

    everyone = [join(libraries[0])]
    sent = send_numbers(bootstrap, topic, PARTITIONS, 0, 60)
    await_shared(everyone, everything)
    await_values(everyone, sent)
    for library in (libraries[1], *libraries):
        everyone.append(join(library))
        await_shared(everyone, everything)
    sent += send_numbers(bootstrap, topic, PARTITIONS, 60, 60)
    await_values(everyone, sent)
    everyone[0].close()  # in a classic group the other library assigns from here on
    everyone[2].close()
    left = [everyone[1], everyone[3]]
    await_shared(left, everything)
    assert [len(member.assignment) for member in left] == [3, 3]
    sent += send_numbers(bootstrap, topic, PARTITIONS, 120, 60)
    await_values(everyone, sent)
    assert sorted(value for member in everyone for value in member.values) == sorted(sent)
