"""One module per Kafka API; `ottla.broker.wire.api.table` says which, in which versions."""
