"""Records for members of groups: spread over the partitions of a topic, known by their values."""

from tests.support.peers.clients import CLIENTS, Outgoing, ProducerOptions


def send_numbers(bootstrap: str, topic: str, partitions: int, first: int, count: int) -> list[str]:
    """Records `first` … `first + count - 1`, in turn to all partitions; their values."""
    values = [str(number) for number in range(first, first + count)]
    records = [Outgoing(value.encode(), partition=int(value) % partitions) for value in values]
    CLIENTS["confluent"]().produce(bootstrap, topic, records, ProducerOptions())
    return values
