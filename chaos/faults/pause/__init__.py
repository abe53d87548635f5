"""A pause of the training by the SDK."""
