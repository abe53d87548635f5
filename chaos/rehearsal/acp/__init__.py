"""The stand-in of MindIO ACP: the latest checkpoint of every rank in memory."""
