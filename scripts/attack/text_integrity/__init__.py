"""Text integrity: items such as prices, placeholders and code that a translation must hold unchanged and in order."""
