"""Sights worked out by hand: pinhole projections of points and parabolas, for the tests of the eyes."""

import numpy as np

from dris.perception.camera import laboratory_rig
from dris.perception.detect import Detection
from dris.perception.triangulate import sight_through

G = 9.81
RIG = laboratory_rig()
PLAIN = laboratory_rig(distortion=(0.0,) * 5)
NEAR_PLATE = np.array([0.69, 0.0, 0.75])


def pinhole(camera, point):
    """Where a camera without a lens sees a point, written out."""
    right, down, ahead = camera.camera_to_base[:3, :3].T
    offset = point - camera.camera_to_base[:3, 3]
    depth = ahead @ offset
    return (
        camera.centre_px[0] + camera.focal_px[0] * (right @ offset) / depth,
        camera.centre_px[1] + camera.focal_px[1] * (down @ offset) / depth,
    )


START, VELOCITY = np.array([0.9, 0.1, 1.2]), np.array([-1.5, 0.4, -2.0])
TIMES = np.arange(9) * 0.0125
"""Where and how fast a throw begins, and when it is seen: base frame, SI."""


def exact_sight(rig, time_s, camera, point, noise_px=(0.0, 0.0)):
    """The sight of a point, without ball or lens."""
    model = rig[camera]
    x, y = np.add(pinhole(model, point), noise_px)
    return sight_through(
        time_s,
        camera,
        model,
        ((x - model.centre_px[0]) / model.focal_px[0], (y - model.centre_px[1]) / model.focal_px[1]),
    )


def parabola(start, velocity, t):
    return np.asarray(start) + np.asarray(velocity) * t - np.array([0, 0, 0.5 * G * t * t])


def throw_sights(rig, start, velocity, times, offset_s=0.005, sigma_px=0.0, generator=None):
    sights = []
    for t in times:
        for camera in (0, 1):
            noise = generator.normal(0, sigma_px, 2) if generator is not None else (0, 0)
            at = t + camera * offset_s
            sights.append(exact_sight(rig, at, camera, parabola(start, velocity, at), noise))
    return sights


def feed(
    tracker,
    path,
    times,
    generator=None,
    sigma_px=0.1,
    offset_s=0.005,
    blind=lambda t, camera: False,
    radius=0.03,
):
    """Show a path to a tracker as pixels; yields the time after every frame."""
    for t in times:
        for camera in (0, 1):
            at = t + camera * offset_s
            model = tracker.rig[camera]
            pixel = np.array(pinhole(model, path(at)))
            if generator is not None:
                pixel += generator.normal(0, sigma_px, 2)
            depth = model.to_camera(path(at))[2]
            # the outline's centre, further out than the ball's by 1 / (1 - (r/Z)^2)
            pixel = model.centre_px + (pixel - model.centre_px) / (1 - (radius / depth) ** 2)
            found = None if blind(at, camera) else Detection(tuple(pixel), 600 * radius / depth, 1.0)
            tracker.observe(at, camera, found)
            yield at
