"""Two drivers, one truth: what replicas were given under one, played to them under the other."""
