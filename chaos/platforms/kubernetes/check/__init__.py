"""The problems that `chaos kubernetes check` finds in manifests before a cluster does."""
