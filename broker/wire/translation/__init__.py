"""Between bytes and values: requests read, answers written. No handler imports anything of it."""
