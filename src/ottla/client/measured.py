"""`MeasuredFace`: what all faces of clients have: their metrics, which work from any thread, and no pickling or copying."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ottla.client.other_clients import FaceType, explain_others, own_names

if TYPE_CHECKING:
    from ottla.client.metrics import ClientMetrics
    from ottla.client.prometheus import PrometheusCollector


class MeasuredFace(metaclass=FaceType):
    """The base class of the faces: it reads the metrics of their core."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        explain_others(cls)

    @property
    def _measured(self) -> ClientMetrics:
        raise NotImplementedError

    def metrics(self) -> dict[str, dict[str, float]]:
        """The values of Kafka's metrics by group and name: `metrics()["producer-metrics"]["record-send-total"]`."""
        return self._measured.as_dict()

    def prometheus_text(self) -> str:
        """The metrics in Prometheus's text format."""
        return self._measured.prometheus_text()

    def prometheus_collector(self) -> PrometheusCollector:
        """The metrics for the `prometheus_client` library: `REGISTRY.register(producer.prometheus_collector())`."""
        from ottla.client.prometheus import PrometheusCollector

        return PrometheusCollector(self._measured.registry, self._measured.now_ms)

    def __dir__(self) -> list[str]:
        return own_names(super().__dir__(), type(self))

    def __reduce__(self) -> NoReturn:
        """Refuse `pickle` and `copy`: Spark and multiprocessing would meet a lock or a socket deep inside."""
        name = type(self).__name__
        raise TypeError(
            f"{name} objects cannot be pickled or copied: connections belong to one process. Make one where it is used"
        )
