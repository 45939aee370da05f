"""Creates the clients of a run from its plan."""

from __future__ import annotations

from random import Random

from ottla.sim.checkers.checker import Place, TopicPlan
from ottla.sim.clients.admin import Admin
from ottla.sim.clients.app import App
from ottla.sim.clients.cleaner import Cleaner
from ottla.sim.clients.client import Client, Stage
from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.member import Committer, Member, Reader
from ottla.sim.clients.producer import Producer
from ottla.sim.coordination import GroupPlan
from ottla.sim.plan import Plan


class Cast:
    """All clients of a run except the auditor."""

    def __init__(self, plan: Plan, stage: Stage, admin: Admin) -> None:
        self._plan, self._stage, self._admin = plan, stage, admin
        self.clients: list[Client] = [admin]
        self._offered: dict[str, None] = {}

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
                made.append(Committer(stage, name, group.name, lambda: admin.topics))
            else:
                is_classic, is_mixed = group.speaks_classic(index), group.protocol == "mixed"
                kind = Reader if group.is_reading else Member
                made.append(
                    kind(stage, name, group.name, instance, lambda: admin.topics, is_classic=is_classic, is_mixed=is_mixed)
                )
        if group.is_cleaned:
            cleaner = Cleaner(stage, group.name, admin.places, has_members=group.protocol != "simple")
            cleaner.reports_offsets = not group.is_reading
            made.append(cleaner)
        return made

    def _make_apps(self, inputs: list[Place], outputs: list[Place]) -> None:
        for app in self._plan.apps:
            for index, version in enumerate(app.instances):
                self.clients.append(
                    App(self._stage, f"{app.name}.{index}", app, version, inputs if app.is_transforming else [], outputs)
                )

    def _offer(self, topic: TopicPlan) -> None:
        """A temporary topic was created. Producers write to it until it is deleted, but only to the first of its name.

        They may still hold records for a deleted topic when another gets its name, and then write them there.
        """
        if topic.name in self._offered:
            return
        self._offered[topic.name] = None
        for client in self.clients:
            if isinstance(client, Producer):
                client.add_places([Place(topic, index) for index in range(topic.partitions)])
