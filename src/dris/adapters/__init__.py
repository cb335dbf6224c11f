"""The environment as other libraries expect it: Gymnasium and rsl_rl. Each needs its extra."""
