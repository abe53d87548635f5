"""The platform ``docker``: a node is a container, and its hand is started in it by the engine's ``exec``."""
