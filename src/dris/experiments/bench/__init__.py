"""How fast and how right the training world is, beside its peers."""
