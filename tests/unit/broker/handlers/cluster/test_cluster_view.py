"""What handlers report about the cluster."""

import pytest
from tests.support.nodes.images import broker, image_of

from ottla.broker.handlers.cluster.cluster_view import alive_broker_id


@pytest.mark.parametrize(
    ("fenced", "own_id", "reported"),
    [((), 2, 2), ((1,), 2, 2), ((2,), 2, 1), ((1, 2), 2, 3), ((), 9, 1), ((1, 2, 3), 2, -1)],
)
def test_the_broker_that_answers_is_reported_as_controller_unless_it_is_fenced(
    fenced: tuple[int, ...], own_id: int, reported: int
) -> None:
    image = image_of([broker(node, fenced=node in fenced) for node in (1, 2, 3)], {})
    assert alive_broker_id(image, own_id) == reported
