"""Inside of the stand-in for the cluster agent ``taskd``: it runs in msrun's process and controls the ranks'."""
