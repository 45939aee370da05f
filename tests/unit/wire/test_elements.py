"""Counting the elements of messages."""

from ottla.wire.elements import has_many_elements
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def test_elements_of_all_arrays_count() -> None:
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData() for _ in range(3)]) for _ in range(2)]
    request = ProduceRequest(topic_data=topics)
    assert has_many_elements(request, 7)  # two topics with three partitions each are eight
    assert not has_many_elements(request, 8)


def test_null_and_empty_arrays_have_no_elements() -> None:
    assert not has_many_elements(MetadataRequest(topics=None), 0)
    assert not has_many_elements(MetadataRequest(topics=[]), 0)
    assert has_many_elements(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 0)
