"""The settings of members: each protocol takes its own, and members of one group agree on the assignor."""

from tests.support.nodes.sim_stage import TOPIC, Recording, on_stage

from ottla.config.client import consumer_settings
from ottla.sim.clients.client import CLIENT_SETTINGS, Stage
from ottla.sim.clients.member import Committer, Member, Reader


def test_settings_are_accepted_and_agree_within_a_group() -> None:
    def body(stage: Stage, checker: Recording) -> None:
        def member(name: str, *, is_classic: bool, kind: type[Member] = Member) -> Member:
            return kind(stage, name, "g", None, lambda: [TOPIC], is_classic=is_classic, is_mixed=False)

        made = [member("g.0", is_classic=True), member("g.1", is_classic=True), member("g.2", is_classic=False)]
        reader = member("g.3", is_classic=False, kind=Reader)
        plans = [consumer_settings("node:9092", None, CLIENT_SETTINGS | each.settings()) for each in (*made, reader)]
        assert plans[0].partition_assignment_strategy == plans[1].partition_assignment_strategy
        assert [each.group_protocol for each in plans] == ["classic", "classic", "consumer", "consumer"]
        assert [each.enable_auto_commit for each in plans] == [False, False, False, True]
        assert [each.protocol for each in made] == ["classic", "classic", "consumer"]

    on_stage(body)


def test_only_groups_with_unique_offsets_are_followed() -> None:
    assert (Committer.reports_offsets, Member.reports_offsets, Reader.reports_offsets) == (True, True, False)
