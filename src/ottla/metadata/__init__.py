"""Cluster metadata: immutable images of it, and the controller's decisions that change it. Pure: no clock, disk or network."""
