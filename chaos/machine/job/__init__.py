"""A job's processes, and the protocol of every platform that holds one."""
