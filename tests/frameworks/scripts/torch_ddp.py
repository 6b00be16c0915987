"""Two ranks fit a line with DistributedDataParallel over gloo; each sees its own half of the data."""

import os

import torch
from pai_tasks import rank_and_world, shard
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")  # MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
assert (rank, world) == rank_and_world()

points = torch.linspace(-1, 1, 64).reshape(-1, 1)
mine = torch.stack(shard(points))
assert len(mine) == 32
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for _ in range(100):
    optimizer.zero_grad()
    loss = ((model(mine) - (3 * mine + 1)) ** 2).mean()
    loss.backward()
    optimizer.step()
weights = [parameter.item() for parameter in model.parameters()]
total = loss.detach().clone()
torch.distributed.all_reduce(total)
if rank == 0:
    torch.save(model.module.state_dict(), os.path.join(os.environ["PAI_OUTPUT_DIR"], "model.pt"))
print(f"torch {torch.__version__} rank {rank} of {world} loss {total.item() / world:.2e} weights {weights}")
