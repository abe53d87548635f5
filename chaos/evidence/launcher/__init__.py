"""Evidence about the launcher of a job."""
