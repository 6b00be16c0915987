"""Two ranks fit a line with paddle.DataParallel; each sees its own half of the data."""

import paddle
import paddle.distributed as dist
from pai_tasks import rank_and_world, shard

paddle.seed(0)
dist.init_parallel_env()  # PADDLE_TRAINER_ID, PADDLE_TRAINER_ENDPOINTS, …, PADDLE_DISTRI_BACKEND=gloo
rank, world = dist.get_rank(), dist.get_world_size()
assert (rank, world) == rank_and_world()

points = [-1 + index / 31.5 for index in range(64)]
mine = paddle.to_tensor(shard(points)).reshape([-1, 1])
model = paddle.DataParallel(paddle.nn.Linear(1, 1))
optimizer = paddle.optimizer.SGD(0.3, parameters=model.parameters())
for _ in range(100):
    loss = ((model(mine) - (3 * mine + 1)) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
weights = [parameter.item() for parameter in model.parameters()]
total = loss.detach().clone()
dist.all_reduce(total)
print(f"paddle {paddle.__version__} rank {rank} of {world} loss {total.item() / world:.2e} weights {weights}")
