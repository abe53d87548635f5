"""The live page: the runs in progress, drawn by its scripts from what the server says once a second."""
