"""Faults between the nodes of a job: delay, loss, rate, partitions, ports, connections."""
