"""What every room builds on: the clock, waiting, files that others have made, strict JSON, names to objects."""
