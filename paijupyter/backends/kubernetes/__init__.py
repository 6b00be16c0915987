"""Jobs on a Kubernetes cluster, as a user of one of its namespaces."""
