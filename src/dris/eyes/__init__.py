"""Seeing the ball: two calibrated cameras, colour segmentation, triangulation, a tracker of its state."""
