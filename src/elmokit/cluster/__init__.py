"""A corpus larger than one process: shards, their manifest, and the engines that compute them."""
