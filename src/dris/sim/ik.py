"""Inverse kinematics for the plate: one Warp thread per target, the best feasible pose always.

The answer is the minimiser, inside the joint limits, of

    |p - p*|^2 + w_tilt |tilt error|^2 + w_yaw (yaw error)^2 + w_home |q - q_home|^2,

found from a start by Gauss-Newton steps with Levenberg damping; joints that push against a limit are
held there. Position and tilt come first; yaw (the plate is square) and posture take what freedom is
left. A joint limit can make a saddle of a pose that could be reached: with `retries`, an answer that
misses is pushed off it. A controller does without, because the far side may be a swing of the elbow
away.
"""

from functools import lru_cache

import warp as wp

from dris.sim.chain import Chain, chain_functions

# Where yaw and posture stand between the plate and its target, their weights shrink to this share.
RELEASED = wp.constant(0.02)


@lru_cache
def ik_kernel(m: int):
    """The kernel that solves targets for arms of m joints."""
    fn = chain_functions(m)
    vec = fn.vec

    @wp.func
    def residual(pos: wp.vec3, quat: wp.quat, goal_pos: wp.vec3, goal_quat: wp.quat):
        """Position error, tilt error and yaw error, rotations as vectors in the base frame."""
        normal = wp.quat_rotate(quat, wp.vec3(0.0, 0.0, 1.0))
        goal_normal = wp.quat_rotate(goal_quat, wp.vec3(0.0, 0.0, 1.0))
        axis = wp.cross(normal, goal_normal)
        sine = wp.length(axis)
        tilt = wp.vec3(0.0, 0.0, 0.0)
        if sine > 1.0e-9:
            tilt = axis * (wp.atan2(sine, wp.dot(normal, goal_normal)) / sine)
        # Yaw: what remains about the normal once the tilt error is taken away.
        after = wp.quat_rotate(
            wp.quat_from_axis_angle(wp.normalize(axis), wp.length(tilt)),
            wp.quat_rotate(quat, wp.vec3(1.0, 0.0, 0.0)),
        )
        goal_x = wp.quat_rotate(goal_quat, wp.vec3(1.0, 0.0, 0.0))
        yaw = wp.atan2(wp.dot(wp.cross(after, goal_x), goal_normal), wp.dot(after, goal_x))
        return goal_pos - pos, tilt, yaw, normal

    @wp.kernel(module="unique", enable_backward=False)
    def solve_targets(
        chain: Chain,
        home: wp.array(dtype=vec),
        tilt_weight: float,
        yaw_weight: float,
        home_weight: float,
        stay_weight: float,
        position_tolerance: float,
        tilt_tolerance: float,
        iterations: int,
        retries: int,
        first: int,
        goal_pos: wp.array(dtype=wp.vec3),
        goal_quat: wp.array(dtype=wp.quat),
        start: wp.array(dtype=vec),
        answer: wp.array(dtype=vec),
        error: wp.array(dtype=wp.vec2),
    ):
        b = first + wp.tid()
        q = start[b]
        rest = home[0]
        for i in range(m):
            q[i] = wp.clamp(q[i], chain.lower[i], chain.upper[i])
        origin = q
        best = q
        best_cost = float(1.0e30)
        best_error = wp.vec2(0.0, 0.0)
        damping = float(1.0e-6)
        soft = float(1.0)  # scale of the yaw and home weights
        top = q  # best of the settled tries
        top_cost = float(1.0e30)
        top_error = wp.vec2(0.0, 0.0)
        kicks = int(0)
        for step in range(iterations):
            angular, linear, pos, quat = fn.forward(chain, q)
            dp, tilt, yaw, normal = residual(pos, quat, goal_pos[b], goal_quat[b])
            cost = wp.dot(dp, dp) + tilt_weight * wp.dot(tilt, tilt) + soft * yaw_weight * yaw * yaw
            for i in range(m):
                cost = cost + soft * home_weight * (q[i] - rest[i]) * (q[i] - rest[i])
                cost = cost + stay_weight * (q[i] - origin[i]) * (q[i] - origin[i])
            if cost < best_cost:
                gained = best_cost - cost
                best = q
                best_cost = cost
                best_error = wp.vec2(wp.length(dp), wp.length(tilt))
                damping = wp.max(damping * 0.2, 1.0e-7)
                settled = gained < 1.0e-9 + 1.0e-4 * cost
            else:
                damping = damping * 10.0
                settled = damping > 10.0
                q = best
                angular, linear, pos, quat = fn.forward(chain, q)
                dp, tilt, yaw, normal = residual(pos, quat, goal_pos[b], goal_quat[b])
            if settled:
                if best_error[0] < position_tolerance and best_error[1] < tilt_tolerance:
                    break
                if soft < 1.0:
                    if best_cost < top_cost:
                        top = best
                        top_cost = best_cost
                        top_error = best_error
                    if kicks == retries:
                        break
                    kicks = kicks + 1
                    for i in range(m):
                        kick = 0.4 * wp.sin(2.4 * float(kicks * (i + 1)))
                        best[i] = wp.clamp(top[i] + kick, chain.lower[i], chain.upper[i])
                soft = RELEASED
                best_cost = 1.0e30
                damping = 1.0e-6
                q = best
                continue
            lhs = fn.mat()
            rhs = vec()
            moves = fn.rows()  # plate velocity per joint
            turns = fn.rows()  # its rotation per joint, the part that tilts
            twists = vec()  # its rotation per joint about the normal
            for i in range(m):
                moves[i] = linear[i] + wp.cross(angular[i], pos)
                twists[i] = wp.dot(angular[i], normal)
                turns[i] = angular[i] - normal * twists[i]
            for i in range(m):
                rhs[i] = (
                    wp.dot(moves[i], dp)
                    + tilt_weight * wp.dot(turns[i], tilt)
                    + soft * yaw_weight * twists[i] * yaw
                    + soft * home_weight * (rest[i] - q[i])
                    + stay_weight * (origin[i] - q[i])
                )
                for j in range(m):
                    lhs[i, j] = (
                        wp.dot(moves[i], moves[j])
                        + tilt_weight * wp.dot(turns[i], turns[j])
                        + soft * yaw_weight * twists[i] * twists[j]
                    )
                lhs[i, i] = lhs[i, i] + soft * home_weight + stay_weight + damping
            # Hold joints that stand at a limit and are pushed further.
            for i in range(m):
                held = (q[i] <= chain.lower[i] and rhs[i] < 0.0) or (q[i] >= chain.upper[i] and rhs[i] > 0.0)
                if held:
                    for j in range(m):
                        lhs[i, j] = 0.0
                        lhs[j, i] = 0.0
                    lhs[i, i] = 1.0
                    rhs[i] = 0.0
            dq = fn.solve(lhs, rhs)
            largest = float(0.0)
            for i in range(m):
                largest = wp.max(largest, wp.abs(dq[i]))
            scale = wp.min(1.0, 0.5 / wp.max(largest, 1.0e-9))  # at most 0.5 rad a step
            for i in range(m):
                q[i] = wp.clamp(best[i] + scale * dq[i], chain.lower[i], chain.upper[i])
        if top_cost < best_cost:
            best = top
            best_error = top_error
        answer[b] = best
        error[b] = best_error

    return solve_targets
