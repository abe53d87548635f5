"""The views of `chaos watch`: of an attached job, and of a run."""
