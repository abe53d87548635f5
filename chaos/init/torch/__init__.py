"""What the text of a script in PyTorch says: its shards, the batches of an epoch, and keys of the scenario."""
