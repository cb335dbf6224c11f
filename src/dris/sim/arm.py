"""Step B arms under the paper's torque law: one Warp thread per arm, all substeps in one launch."""

import math
from functools import lru_cache

import numpy as np
import warp as wp

from dris.sim.chain import UNLIMITED, Chain, chain_functions
from dris.sim.model import SerialArm

# Weight of the end of a step in the implicit rule: 0.5 is the trapezoidal rule (second order);
# a little more damps the stiffest mode, D / M of the wrist, at every gain.
_THETA = 0.55
# Largest h D / M [-] at which one step in a substep will do where a torque limit may cut the law. The rule
# rings beyond it, and a limit that cuts one side of the ringing moves the joint.
_STIFF = 2.0
_FINE_STEP_S = 1e-3
# A law that brakes in time knows the torque of the step before: of first order, 0.04 of the speed limits off
# with two steps in 5 ms, 0.07 with one, 0.01 with five, and it costs as many times an arm.
_BRAKING_STEP_S = 2.5e-3
# Rounds of solving and checking: three were enough for the published results, whose bits stay. Finer arms
# take what they need.
_ROUNDS, _FINE_ROUNDS = 3, 12


def choose_steps(
    arm: SerialArm, damping: tuple[float, ...], substep_s: float, rate_limited: bool, brakes_in_time: bool
) -> int:
    """Steps of the arm in a substep: one, or of 1 ms if gains are stiff for their inertias or joints rub."""
    limited = np.isfinite(arm.torque_range).any(axis=1) | rate_limited
    stiff = limited & (substep_s * np.array(damping) * arm.inverse_inertia > _STIFF)
    if stiff.any() or arm.friction.any():
        return math.ceil(substep_s / _FINE_STEP_S - 1e-9)
    return math.ceil(substep_s / _BRAKING_STEP_S - 1e-9) if brakes_in_time else 1


def clip_rounds(arm: SerialArm, steps: int) -> int:
    """Rounds of solving and checking that a step may take."""
    return _FINE_ROUNDS if steps > 1 or arm.friction.any() else _ROUNDS


@lru_cache
def arm_kernel(m: int):
    """The kernel that steps arms of m joints.

    The law is the paper's Eq. 13, tau = clip(K (q_des - q) - D dq + C + g), with desired positions kept
    inside the joint limits and position errors inside `max_position_error`. It is integrated with
    the linearly implicit theta rule, so that stiff gains are stable at substeps a torque loop at
    1 kHz would need many of: with v = dq + theta (dq' - dq), torque joint by joint is
    K (q_des - q - theta h v) - D v + bias, and joints at their limit give their limit instead. Joint
    friction is MuJoCo's: -J (ddq + b v) up to Coulomb's limit. The joints at a limit of torque or
    friction are found by a few rounds of solve and check.

    A law that brakes in time takes, for dq, the speed that the joints will have once their torques S without
    C + g have been taken back at the limit on their change: M^-1 S |S| / (2 rate) more. And it drives them no
    faster than the model allows near the ends of ranges.
    """
    fn = chain_functions(m)
    vec = fn.vec
    theta = _THETA
    unlimited = UNLIMITED
    jumps = _ROUNDS

    @wp.func
    def allowed(chain: Chain, i: int, way: float):
        """Largest speed towards the end of a range that is `way` off."""
        if chain.deceleration_limit[i] >= unlimited:
            return chain.velocity_limit[i]
        speed = wp.sqrt(2.0 * chain.deceleration_limit[i] * wp.max(way, 0.0)) - chain.velocity_offset[i]
        return wp.clamp(speed, 0.0, chain.velocity_limit[i])

    @wp.func
    def speed_share(chain: Chain, pos: vec, vel: vec):
        """Fastest joint, over what it is allowed where it is."""
        share = float(0.0)
        for i in range(m):
            way = chain.upper[i] - pos[i]
            if vel[i] < 0.0:
                way = pos[i] - chain.lower[i]
            share = wp.max(share, wp.abs(vel[i]) / wp.max(allowed(chain, i, way), 1.0e-6))
        return share

    @wp.func
    def step(
        chain: Chain, k: vec, d: vec, wish: vec, ahead: vec, torque_rate: float, braking: float, h: float,
        rounds: int, pos: vec, vel: vec, tau: vec,
    ):  # fmt: skip
        """One step of h seconds: positions, velocities, torques after it and joints at a torque limit."""
        # Mass matrix and bias at the middle of the step keep the rule second order.
        mass, bias = fn.dynamics(chain, pos + vel * (0.5 * h), vel)
        # A joint runs at K / D times its error: an error cut short is a speed limit.
        goal = vec()
        upper = vec()
        lower = vec()
        come = vec()  # speed that is still to come
        if braking > 0.0:
            for i in range(m):
                come[i] = (tau[i] - bias[i]) * wp.abs(tau[i] - bias[i]) / (2.0 * torque_rate)
            come = fn.solve(mass, come)
        for i in range(m):
            down = ahead[i]
            up = ahead[i]
            hi = chain.torque_upper[i]
            lo = chain.torque_lower[i]
            if torque_rate >= 0.0:
                hi = wp.min(hi, tau[i] + torque_rate * h)
                lo = wp.max(lo, tau[i] - torque_rate * h)
                if braking > 0.0:
                    # The law changes a speed within M / D: what is allowed there, near the end of a range.
                    there = pos[i] + (vel[i] + come[i]) * mass[i, i] / d[i]
                    down = wp.min(down, braking * d[i] / k[i] * allowed(chain, i, there - chain.lower[i]))
                    up = wp.min(up, braking * d[i] / k[i] * allowed(chain, i, chain.upper[i] - there))
            goal[i] = pos[i] + wp.clamp(wish[i] - pos[i], -down, up)
            upper[i] = hi
            lower[i] = lo
        side = vec()  # 0: the law holds; +1 or -1: at the upper or lower torque limit
        slide = vec()  # 0: friction holds the joint; +1 or -1: it is at its limit, this way
        delta = vec()
        for r in range(rounds):
            lhs = mass
            rhs = vec()
            for i in range(m):
                gain = float(0.0)
                push = float(0.0)
                if side[i] == 0.0:
                    gain = d[i] + theta * h * k[i]
                    push = k[i] * (goal[i] - pos[i] - theta * h * vel[i]) - d[i] * (vel[i] + come[i])
                elif side[i] > 0.0:
                    push = upper[i] - bias[i]
                else:
                    push = lower[i] - bias[i]
                lhs[i, i] = lhs[i, i] + h * theta * (gain + chain.damping[i])
                rhs[i] = h * (push - chain.damping[i] * vel[i])
                if chain.friction[i] > 0.0:
                    if slide[i] == 0.0:
                        grip = chain.friction_inertia[i]
                        lhs[i, i] = lhs[i, i] + grip * (1.0 + theta * h * chain.friction_rate[i])
                        rhs[i] = rhs[i] - grip * h * chain.friction_rate[i] * vel[i]
                    else:
                        rhs[i] = rhs[i] + h * slide[i] * chain.friction[i]
            delta = fn.solve(lhs, rhs)
            changed = int(0)
            for i in range(m):
                v = vel[i] + theta * delta[i]
                law = k[i] * (goal[i] - pos[i] - theta * h * v) - d[i] * (v + come[i]) + bias[i]
                now = float(0.0)
                if law > upper[i]:
                    now = 1.0
                if law < lower[i]:
                    now = -1.0
                tau[i] = wp.clamp(law, lower[i], upper[i])
                if r >= jumps and now * side[i] < 0.0:
                    now = 0.0  # to the other limit by way of the law, or the rounds may go in circles
                if now != side[i]:
                    side[i] = now
                    changed = changed + 1
                if chain.friction[i] > 0.0:
                    hold = -chain.friction_inertia[i] * (delta[i] / h + chain.friction_rate[i] * v)
                    now = float(0.0)
                    if wp.abs(hold) > chain.friction[i]:
                        now = wp.sign(hold)
                    if r >= jumps and now * slide[i] < 0.0:
                        now = 0.0
                    if now != slide[i]:
                        slide[i] = now
                        changed = changed + 1
            if changed == 0:
                break
        clips = int(0)
        for i in range(m):
            if side[i] != 0.0:
                clips = clips + 1
            pos[i] = pos[i] + h * (vel[i] + theta * delta[i])
            vel[i] = vel[i] + delta[i]
        return pos, vel, tau, clips

    @wp.kernel(module="unique", enable_backward=False)
    def step_arms(
        chain: Chain,
        stiffness: wp.array(dtype=vec),
        damping: wp.array(dtype=vec),
        max_position_error: wp.array(dtype=vec),  # that the law may act on
        torque_rate: float,  # [Nm/s]; not limited if negative
        braking: float,  # share of the speeds that a law that brakes in time keeps to; 0: it does not
        h: float,
        substeps: int,
        arm_steps: int,  # of the arm in a substep
        rounds: int,  # of solving and checking for joints at a limit
        first: int,
        desired: wp.array(dtype=vec),
        q: wp.array(dtype=vec),
        dq: wp.array(dtype=vec),
        torque: wp.array(dtype=vec),
        clipped: wp.array(dtype=wp.int32),
        fastest: wp.array(dtype=wp.float32),  # joint so far, over what it is allowed where it is
        plate_pos: wp.array2d(dtype=wp.vec3),
        plate_quat: wp.array2d(dtype=wp.quat),
        plate_vel: wp.array2d(dtype=wp.vec3),
        plate_omega: wp.array2d(dtype=wp.vec3),
        plate_axes: wp.array2d(dtype=wp.mat33),
        plate_travel: wp.array(dtype=wp.float32),
    ):
        b = first + wp.tid()
        wish = desired[b]
        for i in range(m):
            wish[i] = wp.clamp(wish[i], chain.lower[i], chain.upper[i])
        pos = q[b]
        vel = dq[b]
        tau = torque[b]
        num_clipped = int(0)
        share = float(0.0)
        travel = float(0.0)  # furthest the plate's centre gets from where it starts
        arm_h = h / float(arm_steps)
        for s in range(substeps + 1):
            # Plate pose and twist at the substep's start (and, last, at the interval's end).
            angular, linear, at, quat = fn.forward(chain, pos)
            omega = wp.vec3(0.0, 0.0, 0.0)
            lin = wp.vec3(0.0, 0.0, 0.0)
            for i in range(m):
                omega = omega + angular[i] * vel[i]
                lin = lin + linear[i] * vel[i]
            plate_pos[b, s] = at
            plate_quat[b, s] = quat
            plate_vel[b, s] = lin + wp.cross(omega, at)
            plate_omega[b, s] = omega
            plate_axes[b, s] = wp.quat_to_matrix(quat)
            travel = wp.max(travel, wp.length(at - plate_pos[b, 0]) + h * wp.length(plate_vel[b, s]))
            if s < substeps:
                for _a in range(arm_steps):
                    pos, vel, tau, clips = step(
                        chain, stiffness[0], damping[0], wish, max_position_error[0], torque_rate, braking,
                        arm_h, rounds, pos, vel, tau,
                    )  # fmt: skip
                    num_clipped = num_clipped + clips
                share = wp.max(share, speed_share(chain, pos, vel))
        if substeps == 0:
            # An arm that was just placed holds itself: its torque starts at the bias.
            mass, tau = fn.dynamics(chain, pos, vel)
        q[b] = pos
        dq[b] = vel
        torque[b] = tau
        clipped[b] = clipped[b] + num_clipped
        fastest[b] = wp.max(fastest[b], share)
        plate_travel[b] = travel

    return step_arms
