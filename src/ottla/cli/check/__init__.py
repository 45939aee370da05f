"""`ottla check`: is this machine fit for a node, how fast are its disks and its way to another, how much does a load need."""
