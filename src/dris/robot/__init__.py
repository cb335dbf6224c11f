"""From a trained policy to a moving arm: export, a runtime without torch, safety, drivers, the loop."""
