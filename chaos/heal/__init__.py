"""Putting back what a run has left: undo steps of live and dead runs, orphans, relocated runs, tidying."""
