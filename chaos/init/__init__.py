"""``chaos init``: reads a user's script and launch line as data, and writes the scenario that follows from them."""
