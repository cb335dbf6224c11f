"""How well the ball is seen."""
