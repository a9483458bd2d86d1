"""Pictures without a detail that recurs."""

import torch


def scenes(n: int, side: int = 60) -> torch.Tensor:
    """Random pictures with the spectrum of natural ones, 1/f."""
    draw = torch.Generator().manual_seed(3)
    noise = torch.fft.rfft2(torch.randn(n, side, side, generator=draw))
    rows, columns = torch.fft.fftfreq(side), torch.fft.rfftfreq(side)
    size = torch.sqrt(rows[:, None] ** 2 + columns**2).clamp(min=1 / side)
    made = torch.fft.irfft2(noise / size, s=(side, side))
    return 0.5 + 0.06 * made / made.std()
