"""Kafka's protocol: bytes of clients to requests, answers to bytes; one handler per API in `api`.

Not: decisions about records and topics. This room sees a node only through the protocol `Host`.
"""
