"""Calibrate a camera from images of a ChArUco board: first its lens, then its place in the base frame.

The lens comes from any views of the board. The place comes from views whose board pose in the base frame is
known, for instance because the robot holds the board; all their corners are solved for one camera pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from dris.perception.calibration import CalibrationError, CalibrationLimits, check_camera
from dris.perception.camera import Array, CameraModel
from dris.perception.detect import Image


@dataclass(frozen=True)
class Board:
    """A ChArUco board. Its frame has the origin at a corner, x along columns, y along rows."""

    columns: int = 8
    rows: int = 6
    square_m: float = 0.04
    marker_m: float = 0.03
    dictionary: str = "DICT_5X5_100"

    def __post_init__(self) -> None:
        """Refuse boards that cannot be printed."""
        if self.columns < 3 or self.rows < 3:
            raise ValueError(f"a board needs 3 x 3 squares or more, got {self.columns} x {self.rows}")
        if not 0 < self.marker_m < self.square_m:
            raise ValueError(f"need 0 < marker_m < square_m, got {self.marker_m} and {self.square_m}")
        if not self.dictionary.startswith("DICT_") or not hasattr(cv2.aruco, self.dictionary):
            raise ValueError(f"OpenCV has no dictionary '{self.dictionary}', but for instance DICT_5X5_100")

    @property
    def pattern(self) -> cv2.aruco.CharucoBoard:
        """OpenCV's description of it."""
        markers = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, self.dictionary))
        return cv2.aruco.CharucoBoard((self.columns, self.rows), self.square_m, self.marker_m, markers)

    def picture(self, square_px: int = 60) -> Image:
        """The board to print, without margin."""
        size = (self.columns * square_px, self.rows * square_px)
        return self.pattern.generateImage(size)  # type: ignore[return-value]


@dataclass(frozen=True)
class CalibrationNeeds:
    """What the images must offer before their calibration is believed."""

    views: int = 8
    """Views with enough corners, each different from the others:"""
    different_px: float = 10.0
    """two whose common corners are no further apart (RMS) are one view."""
    known_views: int = 3
    """Of them, views with a known board pose in the base frame."""
    corners: int = 8
    """Corners of a view that counts."""
    turn_degrees: float = 15.0
    """Largest angle between boards. Parallel boards leave the focal length undetermined (Zhang, 2000)."""
    coverage: float = 0.4
    """Share of the image's width and height that all corners together span."""
    focal_sigma: float = 0.005
    """Largest standard deviation of the focal length, over the focal length: 1 % is 3 cm at 3 m."""
    centre_sigma_px: float = 4.0
    """Largest standard deviation of the optical centre."""
    place_sigma_m: float = 0.005
    """Largest standard deviation of the camera's place found."""


@dataclass(frozen=True, eq=False)
class View:
    """Corners of the board found in one image: places on the board [n, 3] and pixels [n, 2]."""

    image: int
    points_in_board: Array
    pixels: Array


def find_board(image: Image, board: Board, index: int = 0) -> View:
    """The board's corners in an image; none if it is not there."""
    detector = cv2.aruco.CharucoDetector(board.pattern)
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) if image.ndim == 3 else image
    pixels, numbers, _, _ = detector.detectBoard(grey)
    if numbers is None or len(numbers) == 0:
        return View(index, np.zeros((0, 3)), np.zeros((0, 2)))
    corners = np.asarray(board.pattern.getChessboardCorners(), dtype=np.float64)
    return View(index, corners[np.ravel(numbers)], np.asarray(pixels, dtype=np.float64).reshape(-1, 2))


def calibrate_camera(
    name: str,
    images: Sequence[Image],
    boards_to_base: Sequence[Array | None],
    board: Board | None = None,
    needs: CalibrationNeeds | None = None,
    limits: CalibrationLimits | None = None,
    serial: str = "",
) -> CameraModel:
    """A camera from images of a board.

    Args:
        name: Of the camera.
        images: Grey or BGR, all of one size.
        boards_to_base: Pose of the board [4, 4] in each image, None where it is not known.
        board: The board, measured after printing.
        needs: What the images must offer.
        limits: What the result must satisfy.
        serial: What the device calls itself, so that no other is taken for it later.

    Raises:
        CalibrationError: The images do not suffice, contradict each other, or give an impossible camera.
    """
    board, needs, limits = board or Board(), needs or CalibrationNeeds(), limits or CalibrationLimits()
    if len(images) != len(boards_to_base):
        raise CalibrationError(f"{len(images)} images but {len(boards_to_base)} poses: give one per image")
    for index, (image, pose) in enumerate(zip(images, boards_to_base, strict=True)):
        _check_image(image, f"camera '{name}', image {index}")
        if pose is not None:
            _check_pose(pose, f"camera '{name}', board pose {index}")
    sizes = {image.shape[:2] for image in images}
    if len(sizes) > 1:
        raise CalibrationError(
            f"images of camera '{name}' have different sizes {sorted(sizes)}: use one size"
        )
    views = [find_board(image, board, index) for index, image in enumerate(images)]
    views = [view for view in views if len(view.pixels) >= needs.corners]
    if len(views) < needs.views:
        raise CalibrationError(
            f"camera '{name}': {len(views)} of {len(images)} images show {needs.corners} or more corners of "
            f"the board, needed are {needs.views}: take more, sharp and well lit"
        )
    views = _different(views, needs.different_px)
    if len(views) < needs.views:
        raise CalibrationError(
            f"camera '{name}': only {len(views)} of the views differ, needed are {needs.views}: move and "
            "tilt the board between images"
        )
    height, width = next(iter(sizes))
    matrix, distortion, error = _lens(name, views, (width, height), needs)
    known = [(view, pose) for view in views if (pose := boards_to_base[view.image]) is not None]
    if len(known) < needs.known_views:
        raise CalibrationError(
            f"camera '{name}': the board's pose in the base frame is known in {len(known)} usable views, "
            f"needed are {needs.known_views}"
        )
    pose, pose_error, sigma_m = _place(name, known, matrix, distortion)
    camera = CameraModel(
        name=name,
        width=width,
        height=height,
        focal_px=(float(matrix[0, 0]), float(matrix[1, 1])),
        centre_px=(float(matrix[0, 2]), float(matrix[1, 2])),
        distortion=tuple(float(k) for k in distortion[:5]),  # type: ignore[arg-type]
        camera_to_base=pose,
        reprojection_px=max(error, pose_error),
        serial=serial,
    )
    check_camera(camera, limits)
    if not sigma_m <= needs.place_sigma_m:
        raise CalibrationError(
            f"camera '{name}': the known boards leave its place uncertain by {1e3 * sigma_m:.1f} mm, allowed "
            f"are {1e3 * needs.place_sigma_m:g} mm: hold the board nearer, and at more places"
        )
    return camera


def _check_image(image: object, what: str) -> None:
    """Refuse what is no 8-bit grey or BGR image."""
    if not isinstance(image, np.ndarray):
        raise CalibrationError(f"{what} is {type(image).__name__}, expected an 8-bit grey or BGR image")
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)):
        raise CalibrationError(
            f"{what} is {image.dtype} {image.shape}, expected uint8 (height, width) or (height, width, 3)"
        )


def _check_pose(pose: object, what: str) -> None:
    """Refuse what is no rigid transform."""
    found = np.asarray(pose)
    if found.shape != (4, 4) or found.dtype.kind not in "fiu":
        raise CalibrationError(f"{what} has shape {found.shape}, expected a transform (4, 4) or None")
    rotation = found[:3, :3]
    if not np.isfinite(found).all() or np.abs(rotation.T @ rotation - np.eye(3)).max() > 1e-3:
        raise CalibrationError(f"{what} is not finite or its rotation not orthonormal: give None if unknown")


def _different(views: Sequence[View], apart_px: float) -> list[View]:
    """Views of which no two show the board at the same place."""
    found: list[View] = []
    for view in views:
        places = {tuple(point): pixel for point, pixel in zip(view.points_in_board, view.pixels, strict=True)}
        for other in found:
            pairs = zip(other.points_in_board, other.pixels, strict=True)
            moves = [pixel - places[tuple(point)] for point, pixel in pairs if tuple(point) in places]
            if moves and np.sqrt(np.mean(np.sum(np.square(moves), axis=1))) < apart_px:
                break
        else:
            found.append(view)
    return found


def _lens(
    name: str, views: Sequence[View], size: tuple[int, int], needs: CalibrationNeeds
) -> tuple[Array, Array, float]:
    """Intrinsic matrix, distortion and RMS error per corner [px]."""
    everything = np.concatenate([view.pixels for view in views])
    span = (everything.max(axis=0) - everything.min(axis=0)) / size
    if span.min() < needs.coverage:
        raise CalibrationError(
            f"camera '{name}': the board's corners span {span[0]:.2f} of the image's width and {span[1]:.2f} "
            f"of its height, needed is {needs.coverage}: move the board through the whole image"
        )
    points = [view.points_in_board.astype(np.float32) for view in views]
    pixels = [view.pixels.astype(np.float32) for view in views]
    start, none = np.eye(3), np.zeros(5)
    try:
        error, matrix, distortion, turns, _, sigma, _, _ = cv2.calibrateCameraExtended(
            points, pixels, size, start, none
        )
    except cv2.error as failure:
        raise CalibrationError(f"camera '{name}': no camera explains these views: {failure.err}") from failure
    normals = np.array([cv2.Rodrigues(turn)[0][:, 2] for turn in turns])
    # Parallel planes share their vanishing line, so they come out parallel whatever the focal length is.
    widest = float(np.rad2deg(np.arccos(np.clip(normals @ normals.T, -1, 1)).max()))
    if widest < needs.turn_degrees:
        raise CalibrationError(
            f"camera '{name}': all boards are parallel within {widest:.1f} degrees, needed are "
            f"{needs.turn_degrees:g}: tilt the board differently in every view"
        )
    spread = np.ravel(sigma)[:4] / (matrix[0, 0], matrix[1, 1], 1.0, 1.0)  # of fx, fy, cx, cy
    if not (spread[:2].max() <= needs.focal_sigma and spread[2:].max() <= needs.centre_sigma_px):
        raise CalibrationError(
            f"camera '{name}': views leave the focal length uncertain by {100 * spread[:2].max():.2g} % "
            f"and the optical centre by {spread[2:].max():.1f} px, allowed are {100 * needs.focal_sigma:g} % "
            f"and {needs.centre_sigma_px:g} px: take more views, nearer, tilted and into the corners"
        )
    return np.array(matrix, np.float64), np.array(distortion, np.float64).ravel(), float(error)


def _place(
    name: str, known: Sequence[tuple[View, Array]], matrix: Array, distortion: Array
) -> tuple[Array, float, float]:
    """camera_to_base [4, 4] from corners whose places in the base frame are known.

    Also the RMS error [px], and the standard deviation [m] of the camera's place in its worst direction.
    """
    points = np.concatenate(
        [view.points_in_board @ np.asarray(pose)[:3, :3].T + np.asarray(pose)[:3, 3] for view, pose in known]
    )
    pixels = np.concatenate([view.pixels for view, _ in known])
    # SQPnP needs no start and takes points in a plane or not; then least squares in pixels.
    found, turn, shift = cv2.solvePnP(points, pixels, matrix, distortion, flags=cv2.SOLVEPNP_SQPNP)
    if not found:
        raise CalibrationError(f"camera '{name}': no pose explains the known boards: check boards_to_base")
    turn, shift = cv2.solvePnPRefineLM(points, pixels, matrix, distortion, turn, shift)
    rotation = cv2.Rodrigues(turn)[0]
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.T, -rotation.T @ shift.ravel()
    seen, slopes = cv2.projectPoints(points, turn, shift, matrix, distortion)
    error = float(np.sqrt(np.mean(np.sum((seen[:, 0] - pixels) ** 2, axis=1))))
    # Covariance of turn and shift [6, 6], the error being of x and y together; then of c = -R^T t.
    spread = 0.5 * error**2 * np.linalg.pinv(slopes[:, :6].T @ slopes[:, :6])
    both, step = np.concatenate((turn.ravel(), shift.ravel())), 1e-6
    moved = [-cv2.Rodrigues(both[:3] + d[:3])[0].T @ (both[3:] + d[3:]) for d in step * np.eye(6)]
    change = (np.array(moved) - pose[:3, 3]) / step
    sigma_m = float(np.sqrt(np.linalg.eigvalsh(change.T @ spread @ change)[-1]))
    return pose, error, sigma_m
