"""What a topic can be: its name, its configs with Kafka's types, and `Topic` as users write it.

Not: the list of existing topics (`controller`).
"""
