"""FT: torchft's replica groups train on without a group that is gone, and heal it when it is back."""
