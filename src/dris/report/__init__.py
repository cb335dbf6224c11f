"""Pages and figures, made from result files alone."""
