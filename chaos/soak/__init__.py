"""Running scenarios for hours, also with a harness that is killed, and what must not be left afterwards."""
