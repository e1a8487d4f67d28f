"""One module per Kafka API; `ottla.broker.api.table` says which, in which versions."""
