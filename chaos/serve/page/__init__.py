"""The live page: the runs in progress, drawn by its scripts from the state that the server sends once a second."""
