"""The log of MindIO TTP, and the messages of its parts."""
