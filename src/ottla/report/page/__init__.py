"""The look of the house: what every HTML page that Ottla writes has in common."""
