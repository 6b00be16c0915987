"""Two processes fit a line with one jitted step over a mesh of all their devices."""

import os

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(
    os.environ["COORDINATOR_ADDRESS"], int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"])
)

import jax.numpy as jnp  # noqa: E402 - after the processes know each other
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from pai_tasks import rank_and_world, shard  # noqa: E402

rank, world = jax.process_index(), jax.process_count()
assert (rank, world) == rank_and_world()
assert len(jax.devices()) == world

mine = np.array(shard(np.linspace(-1, 1, 64)), dtype=np.float32)
split = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
points = jax.make_array_from_process_local_data(split, mine)


def loss_of(weights, x):
    return ((weights[0] * x + weights[1] - (3 * x + 1)) ** 2).mean()  # the mean over all processes


step = jax.jit(jax.value_and_grad(loss_of))
weights = jnp.zeros(2)
for _ in range(100):
    loss, gradient = step(weights, points)
    weights = weights - 0.3 * np.asarray(gradient)
shown = [float(weight) for weight in weights]
print(f"jax {jax.__version__} rank {rank} of {world} loss {float(loss):.2e} weights {shown}")
jax.distributed.shutdown()
