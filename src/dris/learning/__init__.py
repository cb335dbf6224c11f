"""Learning: set encoder, FiLM policy, their two-stage training, checkpoints and run folders."""
