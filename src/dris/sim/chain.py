"""Kinematics and dynamics of a serial chain as Warp functions, for one arm in one thread.

All spatial quantities are taken about the origin of the base frame, in base axes: a joint moves as
(a, l) with a its axis (zero for a slide) and l the velocity it gives to a point at the origin. Then
no transform between link frames is needed, and the mass matrix and bias are sums along the chain.
"""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import warp as wp

from dris.sim.model import SerialArm


@wp.struct
class Chain:
    """The arrays of a SerialArm on a device; see there for what each holds."""

    is_hinge: wp.array(dtype=wp.float32)
    body_pos: wp.array(dtype=wp.vec3)
    body_quat: wp.array(dtype=wp.quat)
    joint_pos: wp.array(dtype=wp.vec3)
    joint_axis: wp.array(dtype=wp.vec3)
    mass: wp.array(dtype=wp.float32)
    com: wp.array(dtype=wp.vec3)
    inertia: wp.array(dtype=wp.mat33)
    armature: wp.array(dtype=wp.float32)
    damping: wp.array(dtype=wp.float32)
    friction: wp.array(dtype=wp.float32)
    friction_inertia: wp.array(dtype=wp.float32)
    friction_rate: wp.array(dtype=wp.float32)
    torque_lower: wp.array(dtype=wp.float32)
    torque_upper: wp.array(dtype=wp.float32)
    lower: wp.array(dtype=wp.float32)
    upper: wp.array(dtype=wp.float32)
    velocity_limit: wp.array(dtype=wp.float32)
    velocity_offset: wp.array(dtype=wp.float32)
    deceleration_limit: wp.array(dtype=wp.float32)
    plate_pos: wp.vec3
    plate_quat: wp.quat
    gravity: wp.vec3


# A number Warp's float32 holds that stands for "no limit".
UNLIMITED = 1.0e9


def upload(arm: SerialArm, device: str) -> Chain:
    """Copy an arm's constants to a device."""

    def array(values, dtype=wp.float32):
        finite = np.clip(np.asarray(values, np.float64), -UNLIMITED, UNLIMITED)
        return wp.array(finite.astype(np.float32), dtype=dtype, device=device)

    chain = Chain()
    friction = ("friction", "friction_inertia", "friction_rate")
    speed = ("velocity_limit", "velocity_offset", "deceleration_limit")
    for name in ("is_hinge", "mass", "armature", "damping", *friction, *speed):
        setattr(chain, name, array(getattr(arm, name)))
    for name in ("body_pos", "joint_pos", "joint_axis", "com"):
        setattr(chain, name, array(getattr(arm, name), wp.vec3))
    chain.body_quat = array(np.roll(arm.body_quat, -1, axis=1), wp.quat)  # Warp: (x, y, z, w)
    chain.inertia = array(arm.inertia, wp.mat33)
    chain.torque_lower, chain.torque_upper = map(array, arm.torque_range.T)
    chain.lower, chain.upper = map(array, arm.joint_range.T)
    chain.plate_pos = wp.vec3(*arm.plate_pos)
    chain.plate_quat = wp.quat(*np.roll(arm.plate_quat, -1))
    chain.gravity = wp.vec3(*arm.gravity)
    return chain


@lru_cache
def chain_functions(m: int) -> SimpleNamespace:
    """Warp types and functions for a chain of m joints (Warp needs the size when it compiles)."""
    vec = wp.types.vector(length=m, dtype=wp.float32)
    mat = wp.types.matrix(shape=(m, m), dtype=wp.float32)
    rows = wp.types.matrix(shape=(m, 3), dtype=wp.float32)

    @wp.func
    def forward(chain: Chain, q: vec):
        """Joint motions (a, l) [m, 3] each, plate position and orientation, all in the base frame."""
        angular = rows()
        linear = rows()
        pos = wp.vec3(0.0, 0.0, 0.0)
        quat = wp.quat_identity()
        for i in range(m):
            pos = pos + wp.quat_rotate(quat, chain.body_pos[i])
            quat = quat * chain.body_quat[i]
            axis = wp.quat_rotate(quat, chain.joint_axis[i])
            if chain.is_hinge[i] > 0.5:
                anchor = pos + wp.quat_rotate(quat, chain.joint_pos[i])
                quat = quat * wp.quat_from_axis_angle(chain.joint_axis[i], q[i])
                pos = anchor - wp.quat_rotate(quat, chain.joint_pos[i])
                angular[i] = axis
                linear[i] = wp.cross(anchor, axis)
            else:
                pos = pos + axis * q[i]
                linear[i] = axis
        plate = pos + wp.quat_rotate(quat, chain.plate_pos)
        return angular, linear, plate, quat * chain.plate_quat

    @wp.func
    def dynamics(chain: Chain, q: vec, dq: vec):
        """Mass matrix [m, m] with armature, and bias torque C(q, dq) + g(q) [m].

        Bias by Newton-Euler outwards, then one pass inwards that accumulates the bodies' forces and
        composite inertias and projects both on the joints.
        """
        angular = rows()
        linear = rows()
        force = rows()  # of each body on its joint, and its moment about the base origin
        moment = rows()
        first = rows()  # first mass moment m c about the base origin
        inertia_x = rows()  # rows of the inertia about the base origin
        inertia_y = rows()
        inertia_z = rows()
        pos = wp.vec3(0.0, 0.0, 0.0)
        quat = wp.quat_identity()
        omega = wp.vec3(0.0, 0.0, 0.0)  # spatial velocity of the body, at the base origin
        vel = wp.vec3(0.0, 0.0, 0.0)
        alpha = wp.vec3(0.0, 0.0, 0.0)  # spatial acceleration; gravity as an upward acceleration
        acc = -chain.gravity
        for i in range(m):
            pos = pos + wp.quat_rotate(quat, chain.body_pos[i])
            quat = quat * chain.body_quat[i]
            axis = wp.quat_rotate(quat, chain.joint_axis[i])
            a = wp.vec3(0.0, 0.0, 0.0)
            l = axis
            if chain.is_hinge[i] > 0.5:
                anchor = pos + wp.quat_rotate(quat, chain.joint_pos[i])
                quat = quat * wp.quat_from_axis_angle(chain.joint_axis[i], q[i])
                pos = anchor - wp.quat_rotate(quat, chain.joint_pos[i])
                a = axis
                l = wp.cross(anchor, axis)
            else:
                pos = pos + axis * q[i]
            angular[i] = a
            linear[i] = l
            # V_i = V_{i-1} + S dq;  A_i = A_{i-1} + V_i x S dq
            omega = omega + a * dq[i]
            vel = vel + l * dq[i]
            alpha = alpha + wp.cross(omega, a) * dq[i]
            acc = acc + (wp.cross(omega, l) + wp.cross(vel, a)) * dq[i]
            # Body inertia about the base origin, base axes.
            mass = chain.mass[i]
            turn = wp.quat_to_matrix(quat)
            c = pos + turn * chain.com[i]
            h = c * mass
            inertia = turn * chain.inertia[i] * wp.transpose(turn)
            inertia = inertia + wp.diag(wp.vec3(1.0, 1.0, 1.0)) * wp.dot(h, c) - wp.outer(h, c)
            first[i] = h
            inertia_x[i] = inertia[0]
            inertia_y[i] = inertia[1]
            inertia_z[i] = inertia[2]
            # F = I A + V x* (I V)
            momentum = vel * mass + wp.cross(omega, h)
            spin = inertia * omega + wp.cross(h, vel)
            force[i] = acc * mass + wp.cross(alpha, h) + wp.cross(omega, momentum)
            moment[i] = inertia * alpha + wp.cross(h, acc) + wp.cross(omega, spin) + wp.cross(vel, momentum)
        mass_matrix = mat()
        bias = vec()
        total_force = wp.vec3(0.0, 0.0, 0.0)
        total_moment = wp.vec3(0.0, 0.0, 0.0)
        total_mass = float(0.0)
        total_first = wp.vec3(0.0, 0.0, 0.0)
        total_inertia = wp.mat33(0.0)
        for k in range(m):
            j = m - 1 - k
            total_force = total_force + force[j]
            total_moment = total_moment + moment[j]
            total_mass = total_mass + chain.mass[j]
            total_first = total_first + first[j]
            total_inertia = total_inertia + wp.matrix_from_rows(inertia_x[j], inertia_y[j], inertia_z[j])
            a = angular[j]
            l = linear[j]
            bias[j] = wp.dot(a, total_moment) + wp.dot(l, total_force)
            p = l * total_mass + wp.cross(a, total_first)
            s = total_inertia * a + wp.cross(total_first, l)
            for i in range(j + 1):
                value = wp.dot(angular[i], s) + wp.dot(linear[i], p)
                mass_matrix[i, j] = value
                mass_matrix[j, i] = value
            mass_matrix[j, j] = mass_matrix[j, j] + chain.armature[j]
        return mass_matrix, bias

    @wp.func
    def solve(a: mat, b: vec):
        """Solve a x = b for symmetric positive definite a, by Cholesky's method in place."""
        for j in range(m):
            d = a[j, j]
            for k in range(j):
                d = d - a[j, k] * a[j, k]
            d = wp.sqrt(d)
            a[j, j] = d
            for i in range(j + 1, m):
                s = a[i, j]
                for k in range(j):
                    s = s - a[i, k] * a[j, k]
                a[i, j] = s / d
        for i in range(m):
            s = b[i]
            for k in range(i):
                s = s - a[i, k] * b[k]
            b[i] = s / a[i, i]
        for t in range(m):
            i = m - 1 - t
            s = b[i]
            for k in range(i + 1, m):
                s = s - a[k, i] * b[k]
            b[i] = s / a[i, i]
        return b

    return SimpleNamespace(vec=vec, mat=mat, rows=rows, forward=forward, dynamics=dynamics, solve=solve)
