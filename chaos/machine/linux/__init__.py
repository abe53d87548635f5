"""The kernel's view and services: processes, exits, control groups, mounts, loop devices, permissions."""
