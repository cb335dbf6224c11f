"""A sphere at a moving plate: where the plate is, how far its surface, and what an impulse does."""

import warp as wp

FLYING = wp.constant(0)
SLIPPING = wp.constant(1)
ROLLING = wp.constant(2)

# Solid sphere: inertia 2/5 m r^2. A tangential impulse j per unit mass changes the slip by 7/2 j.
SPIN_GAIN = wp.constant(2.5)
STICK_SHARE = wp.constant(2.0 / 7.0)


@wp.struct
class Plate:
    """Pose and velocity of a plate at one moment; `pos` is the centre of its top face."""

    pos: wp.vec3
    quat: wp.quat
    vel: wp.vec3
    omega: wp.vec3


@wp.struct
class Sphere:
    """One sphere: centre, velocity, angular velocity, FLYING, SLIPPING or ROLLING, impacts so far."""

    x: wp.vec3
    v: wp.vec3
    w: wp.vec3
    mode: wp.int32
    impacts: wp.int32


@wp.struct
class Pair:
    """What sphere and plate are like together: radius, friction, restitution, bounce threshold."""

    radius: wp.float32
    static_friction: wp.float32
    dynamic_friction: wp.float32
    restitution: wp.float32
    bounce_speed: wp.float32


@wp.struct
class Touch:
    """Distance of the surfaces [m] and normal from the plate to the sphere."""

    gap: wp.float32
    normal: wp.vec3


@wp.func
def plate_at(a: Plate, b: Plate, h: float, t: float) -> Plate:
    """The plate at time t of a substep of length h from a to b: cubic Hermite path, turning evenly."""
    s = t / h
    s2 = s * s
    s3 = s2 * s
    plate = Plate()
    plate.pos = (
        a.pos * (2.0 * s3 - 3.0 * s2 + 1.0)
        + b.pos * (3.0 * s2 - 2.0 * s3)
        + (a.vel * (s3 - 2.0 * s2 + s) + b.vel * (s3 - s2)) * h
    )
    plate.vel = (b.pos - a.pos) * (6.0 * (s - s2) / h)
    plate.vel = plate.vel + a.vel * (3.0 * s2 - 4.0 * s + 1.0) + b.vel * (3.0 * s2 - 2.0 * s)
    other = b.quat
    if wp.dot(a.quat, b.quat) < 0.0:
        other = -b.quat
    plate.quat = wp.normalize(a.quat * (1.0 - s) + other * s)
    plate.omega = a.omega * (1.0 - s) + b.omega * s
    return plate


@wp.func
def touch(plate: Plate, half: wp.vec3, centre: wp.vec3, radius: float) -> Touch:
    """Sphere against the plate's box, edges and corners included."""
    local = wp.quat_rotate_inv(plate.quat, centre - plate.pos)
    local = local + wp.vec3(0.0, 0.0, half[2])  # from the top face's centre to the box's centre
    nearest = wp.vec3(
        wp.clamp(local[0], -half[0], half[0]),
        wp.clamp(local[1], -half[1], half[1]),
        wp.clamp(local[2], -half[2], half[2]),
    )
    away = local - nearest
    distance = wp.length(away)
    result = Touch()
    if distance > 0.0:
        result.gap = distance - radius
        result.normal = wp.quat_rotate(plate.quat, away / distance)
    else:
        # The centre is inside the box, which only a start inside it can bring about: leave by the
        # nearer of top and bottom face.
        side = wp.where(local[2] >= 0.0, 1.0, -1.0)
        result.gap = side * local[2] - half[2] - radius
        result.normal = wp.quat_rotate(plate.quat, wp.vec3(0.0, 0.0, side))
    return result


@wp.func
def velocity_over(plate: Plate, v: wp.vec3, point: wp.vec3) -> wp.vec3:
    """Velocity v relative to the plate's material at a point."""
    return v - plate.vel - wp.cross(plate.omega, point - plate.pos)


@wp.func
def contact_impulse(ball: Sphere, pair: Pair, plate: Plate, n: wp.vec3, at: wp.vec3, push: float) -> Sphere:
    """Apply the normal impulse `push` along n and the friction it allows, at contact point `at`.

    Friction takes all slip if Coulomb's limit allows: the static one for a sphere that rolls, the
    dynamic one for a sphere that slips. Impulses are per unit mass.
    """
    slip = velocity_over(plate, ball.v - wp.cross(ball.w, n * pair.radius), at)
    slip = slip - n * wp.dot(slip, n)
    speed = wp.length(slip)
    needed = STICK_SHARE * speed
    limit = pair.dynamic_friction * push
    if ball.mode == ROLLING:
        limit = pair.static_friction * push
    ball.v = ball.v + n * push
    ball.mode = ROLLING
    rub = needed
    if needed > limit:
        rub = pair.dynamic_friction * push
        ball.mode = SLIPPING
    if speed > 0.0:
        pull = slip * (-rub / speed)
        ball.v = ball.v + pull
        ball.w = ball.w - wp.cross(n, pull) * (SPIN_GAIN / pair.radius)
    return ball
