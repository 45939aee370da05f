"""Records for members of groups: spread over the partitions of a topic, with unique values."""

from tests.support.peers.clients import CLIENTS, Outgoing, ProducerOptions


def send_numbers(bootstrap: str, topic: str, partitions: int, first: int, count: int) -> list[str]:
    """Send records `first` … `first + count - 1`, in turn to all partitions; returns their values."""
    values = [str(number) for number in range(first, first + count)]
    records = [Outgoing(value.encode(), partition=int(value) % partitions) for value in values]
    CLIENTS["confluent"]().produce(bootstrap, topic, records, ProducerOptions())
    return values
