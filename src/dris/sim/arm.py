"""Step B arms under the paper's torque law: one Warp thread per arm, all substeps in one launch."""

from functools import lru_cache

import warp as wp

from dris.sim.chain import Chain, chain_functions

# Weight of the end of a substep in the implicit rule: 0.5 is the trapezoidal rule (second order);
# a little more damps the stiffest mode, D / M of the wrist, at every gain.
_THETA = 0.55
_CLIP_ROUNDS = 3


@lru_cache
def arm_kernel(m: int):
    """The kernel that steps arms of m joints.

    The law is the paper's Eq. 13, tau = clip(K (q_des - q) - D dq + C + g), with desired positions kept
    inside the joint limits and position errors inside `lead`. It is integrated with
    the linearly implicit theta rule, so that stiff gains are stable at substeps a torque loop at
    1 kHz would need many of: with v = dq + theta (dq' - dq), torque joint by joint is
    K (q_des - q - theta h v) - D v + bias, and joints at their limit give their limit instead. The
    set of those joints is found by a few rounds of solve and check.
    """
    fn = chain_functions(m)
    vec = fn.vec
    rounds = _CLIP_ROUNDS
    theta = _THETA

    @wp.kernel(module="unique", enable_backward=False)
    def step_arms(
        chain: Chain,
        stiffness: wp.array(dtype=vec),
        damping: wp.array(dtype=vec),
        lead: wp.array(dtype=vec),  # largest position error that the law may act on
        torque_rate: float,  # [Nm/s]; not limited if negative
        h: float,
        substeps: int,
        first: int,
        desired: wp.array(dtype=vec),
        q: wp.array(dtype=vec),
        dq: wp.array(dtype=vec),
        torque: wp.array(dtype=vec),
        clipped: wp.array(dtype=wp.int32),
        plate_pos: wp.array2d(dtype=wp.vec3),
        plate_quat: wp.array2d(dtype=wp.quat),
        plate_vel: wp.array2d(dtype=wp.vec3),
        plate_omega: wp.array2d(dtype=wp.vec3),
        plate_axes: wp.array2d(dtype=wp.mat33),
        plate_travel: wp.array(dtype=wp.float32),
    ):
        b = first + wp.tid()
        k = stiffness[0]
        d = damping[0]
        wish = desired[b]
        for i in range(m):
            wish[i] = wp.clamp(wish[i], chain.lower[i], chain.upper[i])
        ahead = lead[0]
        pos = q[b]
        vel = dq[b]
        tau = torque[b]
        num_clipped = int(0)
        travel = float(0.0)  # furthest the plate's centre gets from where it starts
        angular, linear, at, quat = fn.forward(chain, pos)
        for s in range(substeps + 1):
            # Plate pose and twist at the substep's start (and, last, at the interval's end).
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
                # Mass matrix and bias at the middle of the substep keep the rule second order.
                mass, bias = fn.dynamics(chain, pos + vel * (0.5 * h), vel)
                # A joint runs at K / D times its error: an error cut short is a speed limit.
                goal = vec()
                for i in range(m):
                    goal[i] = pos[i] + wp.clamp(wish[i] - pos[i], -ahead[i], ahead[i])
                upper = vec()
                lower = vec()
                for i in range(m):
                    hi = chain.torque_limit[i]
                    lo = -hi
                    if torque_rate >= 0.0:
                        hi = wp.min(hi, tau[i] + torque_rate * h)
                        lo = wp.max(lo, tau[i] - torque_rate * h)
                    upper[i] = hi
                    lower[i] = lo
                side = vec()  # 0: the law holds; +1 or -1: at the upper or lower torque limit
                delta = vec()
                for r in range(rounds):
                    lhs = mass
                    rhs = vec()
                    for i in range(m):
                        gain = float(0.0)
                        push = float(0.0)
                        if side[i] == 0.0:
                            gain = d[i] + theta * h * k[i]
                            push = k[i] * (goal[i] - pos[i] - theta * h * vel[i]) - d[i] * vel[i]
                        elif side[i] > 0.0:
                            push = upper[i] - bias[i]
                        else:
                            push = lower[i] - bias[i]
                        lhs[i, i] = lhs[i, i] + h * theta * (gain + chain.damping[i])
                        rhs[i] = h * (push - chain.damping[i] * vel[i])
                    delta = fn.solve(lhs, rhs)
                    changed = int(0)
                    for i in range(m):
                        v = vel[i] + theta * delta[i]
                        law = k[i] * (goal[i] - pos[i] - theta * h * v) - d[i] * v + bias[i]
                        now = float(0.0)
                        if law > upper[i]:
                            now = 1.0
                        if law < lower[i]:
                            now = -1.0
                        if now != side[i]:
                            changed = changed + 1
                        tau[i] = wp.clamp(law, lower[i], upper[i])
                        side[i] = now
                    if changed == 0:
                        break
                for i in range(m):
                    if side[i] != 0.0:
                        num_clipped = num_clipped + 1
                    pos[i] = pos[i] + h * (vel[i] + theta * delta[i])
                    vel[i] = vel[i] + delta[i]
                angular, linear, at, quat = fn.forward(chain, pos)
        if substeps == 0:
            # An arm that was just placed holds itself: its torque starts at the bias.
            mass, tau = fn.dynamics(chain, pos, vel)
        q[b] = pos
        dq[b] = vel
        torque[b] = tau
        clipped[b] = clipped[b] + num_clipped
        plate_travel[b] = travel

    return step_arms
