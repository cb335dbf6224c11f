"""Triangles for the shapes of a stage."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import trimesh

from dris.core.stage import Shape

Mesh = tuple[np.ndarray, np.ndarray]
"""Vertices [V, 3] and faces [F, 3]."""


def ball(subdivisions: int = 2) -> Mesh:
    """A ball of radius 1."""
    found = trimesh.creation.icosphere(subdivisions=subdivisions)
    return np.asarray(found.vertices), np.asarray(found.faces)


def mesh_of(shape: Shape) -> trimesh.Trimesh:
    """One shape, in its body's frame."""
    if shape.kind == "box":
        found = trimesh.creation.box(extents=2 * np.array(shape.size))
    elif shape.kind == "cylinder":
        found = trimesh.creation.cylinder(shape.size[0], 2 * shape.size[1], sections=24)
    elif shape.kind == "capsule":
        found = trimesh.creation.capsule(2 * shape.size[1], shape.size[0], count=(16, 10))
        found.apply_translation(-found.bounds.mean(axis=0))  # its middle at the origin
    elif shape.kind == "mesh":
        found = trimesh.Trimesh(shape.vertices, shape.faces, process=False)
    else:
        found = trimesh.creation.icosphere(subdivisions=2)
        found.apply_scale(shape.size if shape.kind == "ellipsoid" else shape.size[0])
    place = trimesh.transformations.quaternion_matrix(shape.quaternion)
    place[:3, 3] = shape.position
    found.apply_transform(place)
    return found


def by_body_and_colour(shapes: Iterable[Shape]) -> dict[tuple[int, tuple[float, float, float]], Mesh]:
    """Shapes that move together and look alike, as one mesh each: fewer things to move."""
    groups: dict[tuple[int, tuple[float, float, float]], list[trimesh.Trimesh]] = {}
    for shape in shapes:
        groups.setdefault((shape.body, shape.colour), []).append(mesh_of(shape))
    return {key: _merged(parts) for key, parts in groups.items()}


def _merged(parts: list[trimesh.Trimesh]) -> Mesh:
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    faces = [part.faces + start for part, start in zip(parts, starts, strict=False)]
    return np.concatenate([part.vertices for part in parts]), np.concatenate(faces)
