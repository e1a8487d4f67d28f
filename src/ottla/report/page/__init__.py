"""What all HTML pages of Ottla have in common: frame, style, charts."""
