"""How each mechanism of the SDK is judged, and what a rule is given."""
