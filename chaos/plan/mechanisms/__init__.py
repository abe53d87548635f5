"""The mechanisms of the plan, one file each: what each makes of a strike."""
