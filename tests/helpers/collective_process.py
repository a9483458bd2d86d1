"""In each of two processes: sums, rows, batch normalisation and features are those of the whole.

collective_process.py
"""

import numpy as np
import torch
from torch import nn

from d2cp.core.processes import (
    from_main,
    global_mean,
    global_rows,
    in_shares,
    is_main,
    mean_gradients,
    process_count,
    process_rank,
    share_of,
)
from d2cp.data.pixels import centre_view
from d2cp.disentangle.batch_norm import BatchNorm1d, BatchNorm2d
from d2cp.disentangle.correlation import squared_correlation_within
from d2cp.pipeline.frozen_features import frozen_features
from debias_tiny import CONFIG, backbone, cmnist

assert process_count() == 2, f"{process_count()} processes, not 2"
assert is_main() == (process_rank() == 0) and from_main(process_rank()) == 0
draw = torch.Generator().manual_seed(0)
batch = torch.randn(7, 3, 4, 4, generator=draw, dtype=torch.float64)
share = share_of(len(batch))
assert len(batch[share]) == (4 if is_main() else 3)
assert torch.equal(global_rows(batch[share]), torch.cat([batch[0::2], batch[1::2]])), (
    "one process's rows after the other's"
)
found = in_shares(lambda part: torch.arange(11.0)[part, None] ** 2, 11, 2, (1,))
np.testing.assert_array_equal(found[:, 0], np.arange(11.0) ** 2)


def network(own: bool) -> nn.Sequential:
    """Parameters before, in and after what is computed over the whole batch."""
    two, one = (BatchNorm2d, BatchNorm1d) if own else (nn.BatchNorm2d, nn.BatchNorm1d)
    torch.manual_seed(1)
    layers = [nn.Conv2d(3, 5, 3), two(5), nn.ReLU(), nn.Flatten(), nn.Linear(20, 4)]
    return nn.Sequential(*layers, one(4, affine=False), nn.Linear(4, 4)).double()


def copies(scalars: torch.Tensor) -> torch.Tensor:
    """The penalty of the whole batch, without the processes: squared correlations of pairs."""
    squares = torch.corrcoef(scalars.T) ** 2
    return (squares.sum() - squares.diagonal().sum()) / 12


whole, shared = network(False), network(True)
out = whole(batch)
loss = out.square().mean() + copies(out)
loss.backward()
out = shared(batch[share])
total = global_mean(out.square().mean(), len(out)) + squared_correlation_within(out)
total.backward()
mean_gradients(shared.parameters())
torch.testing.assert_close(total, loss, rtol=0, atol=1e-4)
for (name, one), other in zip(whole.named_parameters(), shared.parameters(), strict=True):
    torch.testing.assert_close(other.grad, one.grad, rtol=0, atol=1e-4, msg=name)
for (name, one), other in zip(whole.named_buffers(), shared.buffers(), strict=True):
    torch.testing.assert_close(other, one, msg=name)
_, store = cmnist()
rows, net, side = np.arange(37), backbone(), CONFIG.image_size
found = frozen_features(net, store, rows, side, batch=8, quiet=True)
alone = net.features(net.normalise(centre_view(store[rows], side)))
assert alone.std(0).min() > 0.01, "features that differ"
torch.testing.assert_close(found, alone, rtol=0, atol=1e-4)
