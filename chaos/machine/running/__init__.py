"""Jobs that are found on this machine by their processes."""
