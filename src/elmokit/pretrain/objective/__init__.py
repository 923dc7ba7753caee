"""The network being trained, its losses, its optimizers and its evaluation."""
