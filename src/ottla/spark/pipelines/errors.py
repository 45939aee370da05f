"""Errors of pipelines: one sentence each, for the person who runs the pipeline."""

from __future__ import annotations

from ottla.errors import OttlaError


class PipelineError(OttlaError):
    """A pipeline cannot be run as it is written."""

    flow: str | None = None
    """The flow that broke, if it was one."""


class FlowFailed(PipelineError):
    """A flow broke while it ran."""

    def __init__(self, flow: str | None, text: str, trace: str) -> None:
        super().__init__(text)
        self.flow = flow
        self.trace = trace
        """All that Spark said, for the log file."""
