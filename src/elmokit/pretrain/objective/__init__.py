"""The network in training: its losses, optimizers and evaluation."""
