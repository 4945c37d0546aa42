"""Eight CPU devices in one process, for the tests of meshes. Set before anything imports JAX."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_cpu_multi_thread_eigen=false"
