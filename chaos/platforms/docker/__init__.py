"""The platform ``docker``: a node is a container, and its remote helper is started in it by the engine's ``exec``."""
