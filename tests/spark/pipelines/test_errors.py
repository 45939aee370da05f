"""Errors of pipelines."""

from ottla.errors import OttlaError
from ottla.spark.pipelines.errors import FlowFailed, PipelineError


def test_broken_flow_is_a_pipeline_error_with_its_trace() -> None:
    error = FlowFailed("f", "the flow f broke", "long trace")
    assert isinstance(error, PipelineError)
    assert isinstance(error, OttlaError)
    assert (error.flow, str(error), error.trace) == ("f", "the flow f broke", "long trace")
