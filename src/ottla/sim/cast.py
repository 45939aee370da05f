"""Creates the clients of a run from its plan."""

from __future__ import annotations

from random import Random

from ottla.sim.checkers.checker import Place, TopicPlan
from ottla.sim.clients.admin import Admin
from ottla.sim.clients.app import App
from ottla.sim.clients.classic_member import ClassicMember
from ottla.sim.clients.cleaner import Cleaner
from ottla.sim.clients.client import Client, Stage
from ottla.sim.clients.committer import Committer
from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.consumer_member import ConsumerMember
from ottla.sim.clients.producer import TOPIC_IDS_FROM, Producer
from ottla.sim.coordination import GroupPlan
from ottla.sim.plan import Plan


class Cast:
    """All clients of a run except the auditor."""

    def __init__(self, plan: Plan, stage: Stage, admin: Admin) -> None:
        self._plan, self._stage, self._admin = plan, stage, admin
        self.clients: list[Client] = [admin]

    def assemble(self) -> None:
        """Create the clients. The topics of the plan must exist."""
        places = self._admin.places()
        written = [place for place in places if place.topic is self._admin.topics[0]] if self._plan.apps else places
        for index, producer in enumerate(self._plan.producers):
            chosen = Random(f"{self._plan.seed}/places/{index}").sample(written, min(len(written), 3))
            self.clients.append(Producer(self._stage, f"p{index}", producer, chosen))
        self._admin.on_made = self._offer
        for index, consumer in enumerate(self._plan.consumers):
            self.clients.append(Consumer(self._stage, f"c{index}", consumer, places))
        for group in self._plan.groups:
            self.clients += self._members(group)
        self._make_apps(written, [place for place in places if place not in written])

    def apps(self) -> list[App]:
        return [client for client in self.clients if isinstance(client, App)]

    def _members(self, group: GroupPlan) -> list[Client]:
        stage, admin = self._stage, self._admin
        made: list[Client] = []
        for index, instance in enumerate(group.instances):
            name = f"{group.name}.{index}"
            if group.protocol == "simple":
                made.append(Committer(stage, name, group.name, admin.places()))
            elif group.speaks_classic(index):
                is_mixed = group.protocol == "mixed"
                made.append(ClassicMember(stage, name, group.name, instance, admin.places, is_mixed))
            else:
                made.append(ConsumerMember(stage, name, group.name, instance, lambda: admin.topics))
        if group.is_cleaned:
            made.append(Cleaner(stage, group.name, admin.places, has_members=group.protocol != "simple"))
        return made

    def _make_apps(self, inputs: list[Place], outputs: list[Place]) -> None:
        for app in self._plan.apps:
            for index, version in enumerate(app.instances):
                self.clients.append(
                    App(self._stage, f"{app.name}.{index}", app, version, inputs if app.is_transforming else [], outputs)
                )

    def _offer(self, topic: TopicPlan) -> None:
        """A temporary topic was created: producers that use topic ids may write to it until it is deleted."""
        for client in self.clients:
            if isinstance(client, Producer) and client.plan.version >= TOPIC_IDS_FROM:
                client.add_places([Place(topic, index) for index in range(topic.partitions)])
