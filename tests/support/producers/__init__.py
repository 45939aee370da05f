"""A model of a cluster that producers' machines send to, without a loop."""
