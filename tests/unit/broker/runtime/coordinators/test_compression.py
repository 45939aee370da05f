"""offsets.topic.compression.codec: records of groups are written with it and read again."""

import pytest
from tests.support.nodes.held_partitions import HeldPartitions, virtual
from tests.support.shards.tally_shard import tally_runtime

from ottla.config.values import InvalidConfig
from ottla.coordinator.contract import Producer
from ottla.ids import OFFSETS_TOPIC
from ottla.log.read import Isolation
from ottla.records.batch import iterate_batches
from ottla.records.compression import Codec


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_compressed_with_the_configured_codec(codec: Codec) -> None:
    async def scenario() -> None:
        held = await HeldPartitions.open()
        await held.make_topic(OFFSETS_TOPIC)
        runtime = tally_runtime(held)
        runtime.codec = codec
        runtime.follow()
        await runtime.call("a", lambda shard, reply, now: shard.set("a", 7, reply, now))
        await runtime.call(
            "b",
            lambda shard, reply, now: shard.set_in_transaction("b", 8, Producer(5, 0), reply, now),
            held.partition(OFFSETS_TOPIC).log.producers.begin_verification(5, -1, 0, False, 0),
        )
        info = held.partition(OFFSETS_TOPIC).read(0, 1 << 20, Isolation.LOG_END)
        assert info.records is not None
        assert [batch.codec for batch in iterate_batches(info.records.read())] == [codec, codec]
        await runtime.stop()
        again = tally_runtime(held)
        again.follow()
        for task in list(again._loading.values()):
            await task
        assert again.shard_at(0).shard.numbers == {"a": 7}
        assert again.shard_at(0).shard.pending == {5: {"b": 8}}

    virtual(scenario())


def test_unknown_codec_is_refused() -> None:
    async def scenario() -> None:
        with pytest.raises(InvalidConfig, match=r"offsets\.topic\.compression\.codec=9"):
            await HeldPartitions.open({"offsets.topic.compression.codec": "9"})

    virtual(scenario())
