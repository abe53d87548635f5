"""The kernel's view and services for networks: links, rules, connections, ports, echoes."""
