"""The twin laboratory: MuJoCo, one object of real mass, two-way contact, 1 kHz torque control, cameras."""

from typing import Literal

Drive = Literal["ideal", "no-rate-limit", "rate-limit", "fitted-gains"]
"""What stands between reference and torque: see `dris.lab.drives`. Here, so that a command line can be read
without MuJoCo."""
