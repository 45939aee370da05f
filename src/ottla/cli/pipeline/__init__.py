"""The `pipeline` verb: data pipelines on Spark."""
