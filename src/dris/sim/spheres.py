"""Step B x N spheres against B moving plates: one Warp thread per sphere, one launch per interval.

An instance sees the plate's motion and nothing else, so instance i of a set depends on the others
only through the shared action (the paper's Eq. 5). A thread keeps its sphere in registers over all
substeps of the interval. Between the plate's samples, which the arm kernel writes at every substep,
the plate follows a cubic path that matches their poses and velocities.

Flight is exact (a parabola). An impact is found at its own time inside the substep, and applies
Newton's restitution and Coulomb's friction to a solid sphere with spin. A sphere that has stopped
bouncing is in contact: it slips or rolls until the plate leaves it faster than it can fall, or it
passes the plate's edge.
"""

import warp as wp

from dris.sim.plate import (
    FLYING,
    SLIPPING,
    Pair,
    Plate,
    Sphere,
    contact_impulse,
    plate_at,
    touch,
    velocity_over,
)

# Impacts handled in one substep before the sphere counts as lying on the plate.
MAX_IMPACTS = wp.constant(8)
ROOT_STEPS = wp.constant(12)
# Flights, impacts and contacts in one substep before the motion is given up as impossible.
MAX_LOOKS = wp.constant(10000)
# Longest step of a sphere that turns about the plate's edge [s].
EDGE_STEP = wp.constant(1.0e-3)


@wp.func
def lie_on_face(
    ball: Sphere, pair: Pair, half: wp.vec3, gravity: wp.vec3, h: float, end: Plate, axes: wp.mat33
):
    """A whole substep in contact with the top face; False if the sphere leaves it or its rim.

    `axes` are the plate's at the end. The usual case of a caught ball, so kept short.
    """
    free = ball.v + gravity * h
    offset = ball.x + (ball.v + free) * (0.5 * h) - end.pos
    n = wp.vec3(axes[0, 2], axes[1, 2], axes[2, 2])
    along_x = axes[0, 0] * offset[0] + axes[1, 0] * offset[1] + axes[2, 0] * offset[2]
    along_y = axes[0, 1] * offset[0] + axes[1, 1] * offset[1] + axes[2, 1] * offset[2]
    gap = wp.dot(n, offset) - pair.radius
    if wp.abs(along_x) > half[0] or wp.abs(along_y) > half[1] or wp.abs(gap) > pair.radius:
        return ball, False
    at = end.pos + offset - n * (pair.radius + gap)
    approach = wp.dot(velocity_over(end, free, at), n)
    if approach > 0.0 and gap > 0.0:
        return ball, False
    before = ball.v
    ball.v = free
    ball = contact_impulse(ball, pair, end, n, at, wp.max(-approach, 0.0))
    ball.x = ball.x + (before + ball.v) * (0.5 * h)
    # Onto the surface, where the sphere is by definition.
    ball.x = ball.x - n * (wp.dot(n, ball.x - end.pos) - pair.radius)
    return ball, True


@wp.func
def lie_anywhere(
    ball: Sphere,
    pair: Pair,
    half: wp.vec3,
    gravity: wp.vec3,
    h: float,
    start: Plate,
    end: Plate,
    t: float,
    may_leave: bool,
):
    """Contact from time t of a substep on, edges included; the time reached, and t if it leaves."""
    dt = h - t
    plate = end
    near = touch(plate, half, ball.x + ball.v * dt + gravity * (0.5 * dt * dt), pair.radius)
    face = wp.quat_rotate(plate.quat, wp.vec3(0.0, 0.0, 1.0))
    if dt > EDGE_STEP and wp.abs(wp.dot(face, near.normal)) < 0.99999:
        dt = EDGE_STEP
        plate = plate_at(start, end, h, t + dt)
        near = touch(plate, half, ball.x + ball.v * dt + gravity * (0.5 * dt * dt), pair.radius)
    free = ball.v + gravity * dt
    n = near.normal
    at = ball.x + (ball.v + free) * (0.5 * dt) - n * (pair.radius + near.gap)
    approach = wp.dot(velocity_over(plate, free, at), n)
    if may_leave and approach > 0.0 and near.gap > 0.0:
        ball.mode = FLYING
        return ball, t
    before = ball.v
    ball.v = free
    ball = contact_impulse(ball, pair, plate, n, at, wp.max(-approach, 0.0))
    ball.x = ball.x + (before + ball.v) * (0.5 * dt)
    near = touch(plate, half, ball.x, pair.radius)
    ball.x = ball.x - near.normal * near.gap
    return ball, wp.where(h - t - dt < 1.0e-6 * h, h, t + dt)


@wp.func
def time_of_impact(
    ball: Sphere,
    pair: Pair,
    half: wp.vec3,
    gravity: wp.vec3,
    h: float,
    start: Plate,
    end: Plate,
    t: float,
    lo: float,
    hi: float,
    gap_hi: float,
) -> float:
    """First time in [t + lo, t + hi] at which the gap closes, relative to t: Illinois method."""
    begin = touch(
        plate_at(start, end, h, t + lo), half, ball.x + ball.v * lo + gravity * (0.5 * lo * lo), pair.radius
    )
    gap_lo = begin.gap
    if gap_lo <= 0.0:
        return lo
    side = int(0)
    for _ in range(ROOT_STEPS):
        mid = (lo * gap_hi - hi * gap_lo) / (gap_hi - gap_lo)
        x_mid = ball.x + ball.v * mid + gravity * (0.5 * mid * mid)
        look = touch(plate_at(start, end, h, t + mid), half, x_mid, pair.radius)
        if wp.abs(look.gap) < 1.0e-7:
            return mid
        if look.gap < 0.0:
            hi = mid
            gap_hi = look.gap
            if side == -1:
                gap_lo = gap_lo * 0.5
            side = -1
        else:
            lo = mid
            gap_lo = look.gap
            if side == 1:
                gap_hi = gap_hi * 0.5
            side = 1
    return hi


@wp.func
def meet_plate(
    ball: Sphere,
    pair: Pair,
    half: wp.vec3,
    gravity: wp.vec3,
    h: float,
    start: Plate,
    end: Plate,
    speed: float,
) -> Sphere:
    """One substep in which sphere and plate can touch: flights, impacts and contact in sequence.

    `speed` bounds how fast they can approach each other.
    """
    t = float(0.0)
    events = int(0)
    apex = float(0.0)  # an impact before this time is the one just had
    looks = int(0)
    while t < h:
        looks = looks + 1
        if looks > MAX_LOOKS:  # so fast that time no longer advances: not a number, for the caller to see
            ball.x = ball.x * (1.0 / (h - h))
            t = h
        if events >= MAX_IMPACTS and ball.mode == FLYING:
            ball.mode = SLIPPING
        if ball.mode != FLYING:
            ball, t = lie_anywhere(ball, pair, half, gravity, h, start, end, t, events < MAX_IMPACTS)
            events = events + wp.where(ball.mode == FLYING, 1, 0)
            apex = t
        else:
            # Look ahead at most half a sphere and half a plate, so that nothing can be passed.
            dt = wp.min(h - t, 0.5 * (pair.radius + half[2]) / wp.max(speed, 1.0e-6))
            if h - t - dt < 1.0e-6 * h:
                dt = h - t
            ahead = touch(
                plate_at(start, end, h, t + dt),
                half,
                ball.x + ball.v * dt + gravity * (0.5 * dt * dt),
                pair.radius,
            )
            hit = ahead.gap < 0.0
            if hit:
                lo = wp.clamp(apex - t, 0.0, dt)
                dt = time_of_impact(ball, pair, half, gravity, h, start, end, t, lo, dt, ahead.gap)
            ball.x = ball.x + ball.v * dt + gravity * (0.5 * dt * dt)
            ball.v = ball.v + gravity * dt
            t = wp.where(h - t - dt < 1.0e-6 * h, h, t + dt)
            if hit:
                events = events + 1
                now = plate_at(start, end, h, t)
                near = touch(now, half, ball.x, pair.radius)
                n = near.normal
                ball.x = ball.x - n * near.gap
                at = ball.x - n * pair.radius
                approach = wp.dot(velocity_over(now, ball.v, at), n)
                apex = t + 0.5 * (h - t)  # touching without closing in: look again further on
                if approach < 0.0:
                    # Impact: Newton's restitution along n, Coulomb's friction across it.
                    rebound = wp.where(-approach > pair.bounce_speed, pair.restitution, 0.0)
                    ball = contact_impulse(ball, pair, now, n, at, -(1.0 + rebound) * approach)
                    ball.impacts = ball.impacts + 1
                    if rebound > 0.0:
                        ball.mode = FLYING
                        # It cannot come back before the top of its hop over the plate.
                        fall = wp.dot((end.vel - start.vel) / h - gravity, n)
                        apex = t
                        if fall > 0.0:
                            apex = t - rebound * approach / fall
    return ball


@wp.kernel(enable_backward=False)
def step_spheres(
    half: wp.vec3,
    gravity: wp.vec3,
    bounce_speed: float,
    h: float,
    substeps: int,
    first: int,
    plate_pos: wp.array2d(dtype=wp.vec3),
    plate_quat: wp.array2d(dtype=wp.quat),
    plate_vel: wp.array2d(dtype=wp.vec3),
    plate_omega: wp.array2d(dtype=wp.vec3),
    plate_axes: wp.array2d(dtype=wp.mat33),
    plate_travel: wp.array(dtype=wp.float32),
    radius: wp.array2d(dtype=wp.float32),
    static_friction: wp.array2d(dtype=wp.float32),
    dynamic_friction: wp.array2d(dtype=wp.float32),
    restitution: wp.array2d(dtype=wp.float32),
    pos: wp.array2d(dtype=wp.vec3),
    vel: wp.array2d(dtype=wp.vec3),
    spin: wp.array2d(dtype=wp.vec3),
    mode: wp.array2d(dtype=wp.int32),
    impacts: wp.array2d(dtype=wp.int32),
):
    """Advance spheres [B, N] over `substeps` substeps of h seconds under the plates' samples."""
    row, i = wp.tid()
    b = first + row
    r = radius[b, i]
    x = pos[b, i]
    v = vel[b, i]
    w = spin[b, i]
    now = mode[b, i]
    hits = impacts[b, i]
    pair = Pair(r, static_friction[b, i], dynamic_friction[b, i], restitution[b, i], bounce_speed)
    fall = wp.length(gravity) * h
    reach = wp.length(half) + half[2] + r  # no contact further from the plate's centre
    s = int(0)
    # Too far away to meet the plate in the whole interval: fly, in the same substeps as everybody, so
    # that no bit depends on how an interval is cut.
    span = h * float(substeps)
    margin = reach + plate_travel[b] + (wp.length(v) + wp.length(gravity) * span) * span
    if wp.length_sq(x - plate_pos[b, 0]) > margin * margin:
        now = FLYING
        while s < substeps:
            x = x + v * h + gravity * (0.5 * h * h)
            v = v + gravity * h
            s = s + 1
    while s < substeps:
        end = Plate(plate_pos[b, s + 1], plate_quat[b, s + 1], plate_vel[b, s + 1], plate_omega[b, s + 1])
        ball = Sphere(x, v, w, now, hits)
        done = bool(False)
        if now != FLYING:
            ball, done = lie_on_face(ball, pair, half, gravity, h, end, plate_axes[b, s + 1])
        if not done:
            # How fast sphere and plate can come together in this substep; generous, for a quick no.
            fastest = wp.max(wp.length_sq(plate_vel[b, s]), wp.length_sq(plate_vel[b, s + 1]))
            speed = wp.length(v) + 1.5 * wp.sqrt(fastest) + fall
            margin = reach + speed * h
            if wp.length_sq(x - plate_pos[b, s]) > margin * margin:
                ball.mode = FLYING
                ball.x = x + v * h + gravity * (0.5 * h * h)
                ball.v = v + gravity * h
            else:
                start = Plate(plate_pos[b, s], plate_quat[b, s], plate_vel[b, s], plate_omega[b, s])
                ball = meet_plate(ball, pair, half, gravity, h, start, end, speed)
        x = ball.x
        v = ball.v
        w = ball.w
        now = ball.mode
        hits = ball.impacts
        s = s + 1
    pos[b, i] = x
    vel[b, i] = v
    spin[b, i] = w
    mode[b, i] = now
    impacts[b, i] = hits
