"""Kafka's protocol: bytes of clients to requests, answers to bytes; one handler per API in `api`.

Not: what is decided about records and topics. It sees a node only as `host`.
"""
