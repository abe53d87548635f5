"""Jobs that run already: choosing one, making faults in it, watching it."""
