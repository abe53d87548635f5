"""Running scenarios for hours, also with a killed harness, and the search for its leftovers."""
