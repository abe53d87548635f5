"""ARF: a process is replaced while the others wait."""
