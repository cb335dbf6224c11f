"""Pictures and films of a policy at work."""
