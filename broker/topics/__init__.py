"""What a topic can be: its name, its configs with Kafka's types, and `Topic` as users write it.

Not: which topics there are (`controller`).
"""
