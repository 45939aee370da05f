"""Cluster metadata: images of it, and the controller that decides how it changes. Pure: no clock, disk or network."""
