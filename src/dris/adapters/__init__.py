"""The environment as other libraries expect it: Gymnasium, rsl_rl, Stable-Baselines3. Extras: gym, sb3."""
