"""One module per Kafka API; `ottla.broker.wire.api.table` lists them with their versions."""
