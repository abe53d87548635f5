"""A job's processes, and what every platform that holds one has to do."""
