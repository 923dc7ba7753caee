"""Fast ways to run the LSTMs of nn/lstm.py and the softmax, on plain tensors.

Each is equal within rounding to the step-by-step reference in nn/lstm.py, and tested against it.
Kernels know nothing of modules: they take :class:`~elmokit.kernels.weights.LSTMWeights`.
"""
