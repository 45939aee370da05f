"""All committed records of a topic, whose partitions any brokers lead. Reads with Ottla's synchronous clients."""

from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true

from ottla import Admin, Consumer
from ottla.ids import TopicPartition


def read_committed(bootstrap: str, topic: str, partitions: int) -> dict[int, list[str]]:
    """The committed values of each partition, once no transaction is open."""
    places = [TopicPartition(topic, index) for index in range(partitions)]
    found: dict[int, list[str]] = {index: [] for index in range(partitions)}
    with (
        Admin(bootstrap, **QUICK) as admin,
        Consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed", **QUICK) as consumer,
    ):
        ends = {each: offset.offset for each, offset in admin.list_offsets(dict.fromkeys(places, "latest")).items()}
        await_true(lambda: consumer.end_offsets(places) == ends, f"all transactions in {topic} to end")
        consumer.assign(places)

        def at_end() -> bool:
            for record in consumer.poll(0.2):
                found[record.partition].append((record.value or b"").decode())
            return all(consumer.position(each) >= end for each, end in ends.items())

        await_true(at_end, f"all committed records of {topic} to be read")
    return found
