"""The base of every room: the clock, waiting, files of others, strict JSON, names to objects."""
