"""Pods taken away, nodes cordoned, conditions by Chaos Mesh.

``node-drain``, ``pod-delete`` and ``pod-evict``: The target must be a whole node (``node: N``). ``node-cordon``,
``node-drain`` and ``node-not-ready``: ``cluster.kubernetes.nodes`` must name the node.
"""
