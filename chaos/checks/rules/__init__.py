"""By which signs each mechanism is known: one file a mechanism, parts of check ``mechanism``."""
