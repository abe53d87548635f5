"""The job kind ``mindformers``: a job that a configuration of MindFormers describes."""
