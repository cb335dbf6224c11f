"""The twin laboratory: MuJoCo, one object of real mass, two-way contact, 1 kHz torque control, cameras."""
