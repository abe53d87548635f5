"""The subjects of the check ``hygiene``: the ends of processes, and leftovers."""
