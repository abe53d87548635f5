"""What the kernel shows and does: processes, exits, control groups, mounts, loop devices, permissions."""
