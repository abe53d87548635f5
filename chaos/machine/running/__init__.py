"""Jobs that are found on this machine by what their processes show."""
