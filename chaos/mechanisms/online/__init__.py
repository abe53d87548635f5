"""UCE and HCCE: an error of the device is repaired online, in the process that had it."""
