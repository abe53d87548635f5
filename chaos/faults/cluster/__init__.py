"""Faults that a cluster makes: pods that are taken away, nodes that are cordoned, conditions by Chaos Mesh."""
