"""Complex numbers and Fourier transforms, of one and more dimensions, and back."""
import torch

x = torch.zeros(8, 100, device="cuda", requires_grad=True)
y = torch.fft.rfft(x)
assert y.shape == (8, 51) and y.dtype == torch.complex64 and y.element_size() == 8
assert torch.fft.irfft(y, n=100).shape == x.shape
y.abs().sum().backward()
assert x.grad.shape == x.shape
z = torch.zeros(4, 32, 48, device="cuda", dtype=torch.complex64)
assert torch.fft.fft2(z).shape == z.shape
assert torch.fft.ifftn(z, dim=(0, 1, 2)).shape == z.shape
assert torch.fft.fftshift(z).shape == z.shape
assert (z @ z.mH).shape == (4, 32, 32)
assert torch.view_as_real(z).shape == (4, 32, 48, 2)
wave = torch.zeros(2, 4000, device="cuda")
window = torch.hann_window(400).cuda()
spectrum = torch.stft(wave, 400, hop_length=160, window=window, return_complex=True)
assert spectrum.shape == (2, 201, 26)
assert torch.backends.cuda.cufft_plan_cache.size > 0
torch.backends.cuda.cufft_plan_cache.clear()
assert torch.backends.cuda.cufft_plan_cache.size == 0
