"""The calibration file of a rig: JSON that is checked whenever it is read or written.

Wrong numbers here move the ball by centimetres with no other symptom, so what cannot be right is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dris.core.errors import DrisError
from dris.core.files import write_json
from dris.perception.camera import CameraModel, Rig

SCHEMA = 1
LARGEST_BYTES = 1024 * 1024
_SHAPES = dict(focal_px=(2,), centre_px=(2,), distortion=(5,), camera_to_base=(4, 4), reprojection_px=())
"""Of a camera's numbers in the file."""
_CAMERA_KEYS = ("name", "width", "height", *_SHAPES)
_DATE, _SERIAL = "calibrated", "serial"
"""Keys that files of earlier versions lack."""


class CalibrationError(DrisError, ValueError):
    """A calibration that cannot be used; the message names the value, what is allowed and the way out."""


@dataclass(frozen=True)
class CalibrationLimits:
    """What a usable calibration of a laboratory rig looks like."""

    image_side: tuple[int, int] = (64, 8192)
    """Width and height of an image [px]."""
    focal: tuple[float, float] = (0.3, 6.0)
    """Focal length over image width: a view of 118 down to 9.5 degrees."""
    focal_ratio: tuple[float, float] = (0.9, 1.1)
    """fx / fy: sensors have square pixels."""
    centre: tuple[float, float] = (0.25, 0.75)
    """Optical centre over image size, along x and y."""
    reprojection_px: float = 1.0
    """Largest RMS error of the calibration; 1 px is about 3 mm at 2 m with f = 600 px."""
    orthonormal: float = 1e-4
    """Largest entry of R^T R - 1."""
    distance_m: float = 10.0
    """Largest distance of a camera from the robot's base."""
    baseline_m: tuple[float, float] = (0.2, 10.0)
    """Distance between the cameras. At 2 m, 0.2 m makes depth ten times less certain than the rest."""


def check_camera(camera: CameraModel, limits: CalibrationLimits | None = None) -> None:
    """Refuse a camera that cannot be right.

    Raises:
        CalibrationError: Naming what is wrong with it.
    """
    limits = limits or CalibrationLimits()
    numbers = (*camera.focal_px, *camera.centre_px, *camera.distortion, camera.reprojection_px)
    if not np.isfinite(numbers).all() or not np.isfinite(camera.camera_to_base).all():
        raise CalibrationError(
            f"camera '{camera.name}' holds a number that is not finite: calibrate it again"
        )

    def need(what: str, value: float, bounds: tuple[float, float], way_out: str) -> None:
        if not bounds[0] <= value <= bounds[1]:
            raise CalibrationError(
                f"camera '{camera.name}': {what} is {value:.6g}, allowed are {bounds[0]:g} to {bounds[1]:g}: "
                f"{way_out}"
            )

    for side, size in (("width", camera.width), ("height", camera.height)):
        need(side, size, limits.image_side, "give the size of the images it was calibrated with, in pixels")
    wide = f"focal lengths are in pixels, of images {camera.width} pixels wide; calibrate again"
    need("focal length over image width", camera.focal_px[0] / camera.width, limits.focal, wide)
    need("focal_px x / y", camera.focal_px[0] / camera.focal_px[1], limits.focal_ratio, "calibrate again")
    for axis, centre, size in zip("xy", camera.centre_px, (camera.width, camera.height), strict=True):
        need(f"centre_px {axis} over image size", centre / size, limits.centre, "calibrate with more views")
    more = "use more and sharper views of a flat board, and the board's measured size"
    need("reprojection error in pixels", camera.reprojection_px, (0.0, limits.reprojection_px), more)

    rotation = camera.camera_to_base[:3, :3]
    error = float(np.abs(rotation.T @ rotation - np.eye(3)).max())
    need("deviation of the rotation from orthonormal", error, (0.0, limits.orthonormal), "no rotation matrix")
    need("determinant of the rotation", float(np.linalg.det(rotation)), (0.99, 1.01), "it is a mirror")
    if not np.array_equal(camera.camera_to_base[3], (0.0, 0.0, 0.0, 1.0)):
        last = camera.camera_to_base[3].tolist()
        raise CalibrationError(
            f"camera '{camera.name}': last row of camera_to_base is {last}, not (0, 0, 0, 1)"
        )
    away = float(np.linalg.norm(camera.position_in_base))
    need("distance from the base in metres", away, (0.0, limits.distance_m), "lengths are in metres")
    _check_lens(camera)


def _check_lens(camera: CameraModel) -> None:
    """Every pixel must have one ray: a polynomial fitted with too few views folds near the corners."""
    x = np.linspace(-0.5, camera.width - 0.5, 21)
    y = np.linspace(-0.5, camera.height - 0.5, 21)
    pixels = np.stack(np.meshgrid(x, y), axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        there_and_back = camera.to_pixels(camera.to_normalised(pixels))
        worst = np.abs(there_and_back - pixels).max()
    if not worst < 0.01:
        raise CalibrationError(
            f"camera '{camera.name}': distortion {tuple(camera.distortion)} folds the image (a pixel returns "
            f"{worst:.3g} px off, allowed is 0.01): calibrate with views that reach into the corners"
        )


def check_rig(rig: Rig, limits: CalibrationLimits | None = None) -> None:
    """Refuse a rig that cannot be right, or that cannot see depth.

    Raises:
        CalibrationError: Naming what is wrong with it.
    """
    limits = limits or CalibrationLimits()
    for camera in rig.cameras:
        check_camera(camera, limits)
    if rig[0].name == rig[1].name:
        raise CalibrationError(f"both cameras are named '{rig[0].name}': give them different names")
    low, high = limits.baseline_m
    if not low <= rig.baseline_m <= high:
        raise CalibrationError(
            f"the cameras are {rig.baseline_m:.3f} m apart, allowed are {low:g} to {high:g} m: move them, or "
            "check that each has its own camera_to_base"
        )


def save_rig(path: Path, rig: Rig, limits: CalibrationLimits | None = None) -> None:
    """Check a rig and write it, atomically; one that has no date was calibrated now."""
    check_rig(rig, limits)
    keys = (*_CAMERA_KEYS, _SERIAL)
    cameras = [{key: np.asarray(getattr(c, key)).tolist() for key in keys} for c in rig.cameras]
    date = (rig.calibrated or datetime.now(UTC)).isoformat(timespec="seconds")
    write_json(path, {"kind": "rig", "schema": SCHEMA, _DATE: date, "cameras": cameras})


def load_rig(path: Path, limits: CalibrationLimits | None = None) -> Rig:
    """Read and check a rig.

    Raises:
        CalibrationError: The file is missing, damaged, of another kind, or holds a wrong calibration.
    """
    if not path.is_file():
        raise CalibrationError(f"there is no calibration file {path}: calibrate, then save_rig")
    if path.stat().st_size > LARGEST_BYTES:
        raise CalibrationError(f"{path} has more than {LARGEST_BYTES} bytes: not a calibration file")
    try:
        content = json.loads(path.read_text())
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CalibrationError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != "rig":
        raise CalibrationError(f"{path} is not a rig's calibration: its 'kind' must be 'rig'")
    _check_keys(content, {"kind", "schema", "cameras"}, str(path), {_DATE})
    if content["schema"] != SCHEMA:
        raise CalibrationError(f"{path} has schema {content['schema']}, this version reads {SCHEMA}")
    entries = content["cameras"]
    if not isinstance(entries, list) or len(entries) != 2:
        raise CalibrationError(f"{path}: 'cameras' must be a list of 2 cameras")
    first, second = (_camera_from(entry, f"{path}, camera {index}") for index, entry in enumerate(entries))
    rig = Rig((first, second), _date(content.get(_DATE), str(path)))
    try:
        check_rig(rig, limits)
    except CalibrationError as error:
        raise CalibrationError(f"{path}: {error}") from error
    return rig


def _date(found: Any, where: str) -> datetime | None:
    """When a rig was calibrated, if its file says so."""
    if found is None:
        return None
    try:
        date = datetime.fromisoformat(found)
    except (TypeError, ValueError):
        date = None
    if date is None or date.tzinfo is None:
        raise CalibrationError(
            f"{where}: {_DATE} is {found!r}, expected a date with its time zone, 2030-01-31T12:00:00+00:00"
        )
    return date


def _check_keys(entry: dict[str, Any], expected: set[str], where: str, also: set[str] | None = None) -> None:
    unknown, missing = sorted(entry.keys() - expected - (also or set())), sorted(expected - entry.keys())
    if unknown or missing:
        raise CalibrationError(
            f"{where}: unknown keys {unknown}, missing keys {missing}; expected are {sorted(expected)}"
        )


def _camera_from(entry: Any, where: str) -> CameraModel:
    if not isinstance(entry, dict):
        raise CalibrationError(f"{where} is {type(entry).__name__}, expected an object")
    _check_keys(entry, set(_CAMERA_KEYS), where, {_SERIAL})
    for key in ("width", "height"):
        if type(entry[key]) is not int:
            raise CalibrationError(f"{where}: {key} is {entry[key]!r}, expected a whole number of pixels")
    if not isinstance(entry["name"], str) or not entry["name"]:
        raise CalibrationError(f"{where}: name is {entry['name']!r}, expected a word")
    serial = entry.get(_SERIAL, "")
    if not isinstance(serial, str):
        raise CalibrationError(f"{where}: {_SERIAL} is {serial!r}, expected a word, or '' if it is not known")
    numbers = {key: _numbers(entry, key, shape, where) for key, shape in _SHAPES.items()}
    return CameraModel(entry["name"], entry["width"], entry["height"], serial=serial, **numbers)


def _numbers(entry: dict[str, Any], key: str, shape: tuple[int, ...], where: str) -> Any:
    """A number, or a tuple (of lists) of numbers, of a given shape, all finite."""
    try:
        array = np.array(entry[key], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CalibrationError(f"{where}: {key} is {entry[key]!r}, expected numbers") from error
    if array.shape != shape or not np.isfinite(array).all():
        raise CalibrationError(f"{where}: {key} is {entry[key]!r}, expected finite numbers of shape {shape}")
    return tuple(array.tolist()) if shape else float(array)


def check_image(image: Any, camera: CameraModel) -> None:
    """Refuse an image that a camera's calibration does not fit.

    Raises:
        CalibrationError: It is no 8-bit BGR image, or has another size.
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        found = f"{image.dtype} {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise CalibrationError(f"camera '{camera.name}' gives {found}, expected uint8 BGR (height, width, 3)")
    if image.shape[:2] != (camera.height, camera.width):
        raise CalibrationError(
            f"camera '{camera.name}' gives {image.shape[1]} x {image.shape[0]} pixels but was calibrated at "
            f"{camera.width} x {camera.height}: set the camera to that size or calibrate again"
        )
