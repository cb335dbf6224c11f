"""The training world: arms, plates and spheres as Warp kernels."""
