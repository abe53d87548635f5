"""The subjects of the check ``mechanism``: the mechanisms that acted, and the SDK's own statements."""
