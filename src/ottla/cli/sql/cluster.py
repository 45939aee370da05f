"""What `ottla sql` asks the cluster for without Spark, and the settings that Spark's clients get."""

from __future__ import annotations

from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings, login_for
from ottla.cli.common.waiting import with_cluster_awaited
from ottla.client.admin.topic_descriptions import list_topics
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster import Cluster
from ottla.config.client.security import PASSWORD, USERNAME

LOGIN = 'org.apache.kafka.common.security.{module} required username="{name}" password="{password}";'


class TopicsOfCluster:
    """The topics of the cluster that the command was pointed at. Brokers that are away are waited for, up to `wait_s`."""

    def __init__(self, settings: ClientSettings, wait_s: float = 0) -> None:
        self._settings = settings
        self._wait_s = wait_s

    def topics(self) -> dict[str, int]:
        """The topics and how many partitions they have."""
        found = with_cluster_awaited(self._settings, list_topics, self._wait_s)
        return {name: topic.partitions for name, topic in found.items()}

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic with the broker's default replication factor."""

        async def create(cluster: Cluster) -> None:
            result = (await create_topics(cluster, [NewTopic(name, partitions)]))[name]
            del result  # raises its error

        with_cluster(self._settings, create)


def client_properties(settings: ClientSettings) -> dict[str, str]:
    """The settings for Spark's clients, by Kafka's names. A user name from the environment becomes sasl.jaas.config."""
    properties = dict(settings.properties)
    login = login_for(properties)
    if USERNAME in login and PASSWORD in login:
        mechanism = properties.get("sasl.mechanism", "PLAIN").upper()
        module = "scram.ScramLoginModule" if mechanism.startswith("SCRAM") else "plain.PlainLoginModule"
        name, password = (login[each].replace("\\", "\\\\").replace('"', '\\"') for each in (USERNAME, PASSWORD))
        properties["sasl.jaas.config"] = LOGIN.format(module=module, name=name, password=password)
    return properties
