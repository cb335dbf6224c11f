"""The catching task in PhysX, the paper's engine family: SAPIEN on the CPU. Needs the extra `physx`."""
