"""The ports of the nodes of `ottla up --nodes`."""

import pytest

from ottla.cli.node.cluster_ports import default_ports


def test_controllers_listen_ten_thousand_ports_above_their_brokers() -> None:
    assert default_ports(9092, 3) == [(9092, 19092), (9093, 19093), (9094, 19094)]
    assert default_ports(55_533, 3)[-1] == (55_535, 65_535)


def test_ports_without_room_are_refused_with_the_highest_that_has_it() -> None:
    with pytest.raises(ValueError, match="Choose a port up to 55533"):
        default_ports(55_534, 3)
