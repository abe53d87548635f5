"""What the kernel shows and does of networks: links, rules, connections, ports, echoes."""
