"""What the check ``injection`` looks at: the planned faults, how each is proven, and no others."""
