"""The judgement of each mechanism of the SDK, and the case that a rule is given."""
