"""The machines of a cluster: a replaced one gives its place to another, and its id to none."""

from typing import Any


def test_a_replacement_has_the_place_and_the_roles_of_a_lost_machine_and_another_id(on_nodes: Any) -> None:
    async def body(nodes: Any) -> None:
        machines = nodes.machines
        for place, is_controller in ((3, False), (1, True)):
            lost = machines[place]
            lost.rate = 0.8
            machines.lose(lost)
            assert machines[place] is lost
            assert lost.is_lost
            new = machines.replace(lost, auto_join=False)
            assert machines[place] is new
            assert (new.is_controller, new.rate, new.is_lost) == (is_controller, 0.8, False)
        assert [each.number for each in machines] == [1, 6, 3, 5]
        assert [each.name for each in machines] == ["n1", "n6", "n3", "n5"]
        assert [each.number for each in machines.lost] == [4, 2]

    on_nodes(body, count=4, controllers=3)


def test_a_machine_is_found_by_its_id_until_it_is_replaced(on_nodes: Any) -> None:
    async def body(nodes: Any) -> None:
        machines = nodes.machines
        lost = machines[0]
        machines.lose(lost)
        assert machines.by_id(1) is lost
        assert machines.by_id(4) is None
        new = machines.replace(lost, auto_join=True)
        assert machines.by_id(1) is None
        assert machines.by_id(4) is new

    on_nodes(body)


def test_a_replacement_looks_for_the_quorum_at_the_controllers_there_are(on_nodes: Any) -> None:
    async def body(nodes: Any) -> None:
        lost = nodes.machines[1]
        nodes.machines.lose(lost)
        new = nodes.machines.replace(lost, auto_join=True)
        assert new.settings["controller.quorum.bootstrap.servers"] == "n1:9093,n4:9093,n3:9093"
        assert new.settings["controller.quorum.auto.join.enable"] == "true"
        assert new.settings["node.id"] == "4"

    on_nodes(body)
