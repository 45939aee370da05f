"""Makes the sources and sinks of ottla.yml known to the pipeline."""

from ottla.spark.pipelines import declare_connections

declare_connections()
