"""The stand-in for a card: its communicator, groups, memory, gradients and watchdog."""
