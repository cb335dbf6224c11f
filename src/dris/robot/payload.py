"""The plate as the robot's payload: what it should be told of, from the same model as everything else."""

from __future__ import annotations

import numpy as np

from dris.catching.robot_model import at_flange, robot_model
from dris.robot.arm import Carried, Payload

MASS_KG, CENTRE_M = 0.03, 0.01
"""Payloads that differ by no more are the same: 0.03 kg at 0.5 m are 0.15 Nm, as much as the wrist's friction
[design]."""


def payload(mass_kg: float, centre: np.ndarray, inertia: np.ndarray) -> Payload:
    """From arrays: a centre [3] and an inertia of nine numbers."""
    x, y, z = map(float, centre)
    return Payload(float(mass_kg), (x, y, z), tuple(map(float, np.ravel(inertia, order="F"))))


def payload_of(mount: str, *bodies: str) -> Payload:
    """Of the model's bodies beyond the flange: `hand`, `plate`."""
    return payload(*at_flange(robot_model(mount), bodies))


def near(one: Payload, other: Payload) -> bool:
    """Whether two payloads weigh the same at the same place; where nothing is, no place counts."""
    if not abs(one.mass_kg - other.mass_kg) <= MASS_KG:
        return False
    off = np.abs(np.subtract(one.centre_in_flange, other.centre_in_flange)).max()
    return bool(max(one.mass_kg, other.mass_kg) <= MASS_KG or off <= CENTRE_M)


def compare(carried: Carried, mount: str) -> tuple[bool, str]:
    """Whether what a robot believes that it carries is what the driver counts on, and what is there.

    The driver declares the plate itself, so the robot's settings must have the hand alone.
    """
    hand, plate = payload_of(mount, "hand"), payload_of(mount, "plate")
    end, load = carried.end_effector, carried.load
    if near(end, payload_of(mount, "hand", "plate")):
        return False, (
            f"its end effector weighs {end.mass_kg:.2f} kg, hand and plate together, and the driver would "
            f"add the plate again: set it to the hand alone in Desk, {_told(hand)}"
        )
    if not near(end, hand):
        return False, f"its end effector is {_told(end)}, the model's hand {_told(hand)}: correct it in Desk"
    if near(load, Payload()):
        return True, f"hand {_told(end)}; the plate, {_told(plate)}, is declared before the arm moves"
    if near(load, plate):
        return True, f"hand {_told(end)}, plate {_told(load)}: as in the model"
    return False, (
        f"it was told of a load of {_told(load)}, the model's plate is {_told(plate)}: take off what is not "
        "the plate, set the load to 0 and connect again"
    )


def _told(payload: Payload) -> str:
    return f"{payload.mass_kg:.2f} kg at {np.round(payload.centre_in_flange, 3).tolist()} m"
