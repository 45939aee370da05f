"""A simulated quorum of pure replicas: network, disks, faults and checkers, from one seed."""
