"""Two drivers, one result: the inputs of replicas under one driver are replayed under the other."""
