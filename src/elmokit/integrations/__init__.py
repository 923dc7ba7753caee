"""ElmoKit in other tools, one module per tool; each needs the extra of its name."""
