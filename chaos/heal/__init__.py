"""Putting back what a run has left: undo steps of live and of dead runs, orphans, relocated runs, tidying."""
