"""Arms for tests: the FR3, and two of other kinds."""

import mujoco

from dris.catching.robot_model import robot_model

# Four joints with a slide, oblique axes, offset anchors, passive damping and a lumped side mass.
GANTRY_XML = """
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <worldbody>
    <body name="rail" pos="0.1 0 0.4" euler="0 0.2 0.3">
      <joint name="slide" type="slide" axis="0 1 0" range="-0.5 0.5" armature="0.1" damping="2"
        actuatorfrcrange="-200 200"/>
      <geom type="box" size="0.05 0.1 0.05" mass="3"/>
      <body name="boom" pos="0.1 0 0.05">
        <joint name="turn" axis="0 0.2 1" pos="0.02 0.01 0" range="-1.5 1.5" armature="0.05"
          actuatorfrcrange="-60 60"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04" mass="2"/>
        <body name="side" pos="0.1 0.1 0"><geom type="sphere" size="0.03" mass="0.5"/></body>
        <body name="fore" pos="0.3 0 0">
          <joint name="lift" axis="0 1 0" range="-2 2" armature="0.05" damping="0.5"
            actuatorfrcrange="-60 60"/>
          <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" mass="1"/>
          <body name="wrist" pos="0.25 0 0" quat="0.9 0.1 0.2 0.1">
            <joint name="roll" axis="1 0 0" range="-2 2" armature="0.03" actuatorfrcrange="-20 20"/>
            <geom name="plate" type="box" pos="0.1 0 0" size="0.1 0.1 0.004" mass="0.4"/>
            <site name="plate" pos="0.1 0 0.004"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
GANTRY_HOME = (0.05, 0.2, -0.3, 0.1)

# Four hinges as public models have them: friction, position servos with force limits, light links without
# armature, and a shoulder that can pull harder than it can push.
SERVO_XML = """
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <default><joint damping="0.2"/><position kp="400" kv="20" ctrlrange="-3 3"/></default>
  <worldbody>
    <body name="column" pos="0 0 0.3">
      <joint name="yaw" axis="0 0 1" range="-3 3" frictionloss="1.0"/>
      <geom type="cylinder" size="0.06 0.1" mass="4"/>
      <body name="upper" pos="0 0 0.1">
        <joint name="shoulder" axis="0 1 0" range="-3 3" frictionloss="0.8"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.04" mass="2"/>
        <body name="lower" pos="0 0 0.3">
          <joint name="elbow" axis="0 1 0" range="-3 3" frictionloss="0.5" armature="0.02"/>
          <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.03" mass="1"/>
          <body name="hand" pos="0.25 0 0">
            <joint name="wrist" axis="0 1 0" range="-3 3" frictionloss="0.2"/>
            <geom name="plate" type="box" pos="0.1 0 0" size="0.1 0.1 0.004" mass="0.3"/>
            <site name="plate" pos="0.1 0 0.004"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="yaw" joint="yaw" forcerange="-40 40"/>
    <position name="shoulder" joint="shoulder" forcerange="-60 30"/>
    <position name="elbow" joint="elbow" forcerange="-15 15" gear="2"/>
    <position name="wrist" joint="wrist" kp="100" kv="5" forcerange="-8 8"/>
  </actuator>
</mujoco>
"""
SERVO_HOME = (0.2, 0.4, 0.3, -0.7)


def fr3_model() -> mujoco.MjModel:
    return robot_model("level")


def fr3_down_model() -> mujoco.MjModel:
    return robot_model("down")


def gantry_model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(GANTRY_XML)


def servo_model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(SERVO_XML)
