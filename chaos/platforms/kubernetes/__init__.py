"""Jobs in the pods of a Kubernetes cluster, with MindCluster and Volcano or without."""
