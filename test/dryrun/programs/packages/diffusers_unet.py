"""A step of a diffusion model: a UNet with cross attention, a schedule of noise, a codec.

needs: diffusers
"""
import torch
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel

unet = UNet2DConditionModel(sample_size=16, block_out_channels=(32, 64), layers_per_block=1,
                            cross_attention_dim=64, attention_head_dim=8,
                            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")).cuda()
codec = AutoencoderKL(block_out_channels=(32, 64), latent_channels=4,
                      down_block_types=("DownEncoderBlock2D",) * 2,
                      up_block_types=("UpDecoderBlock2D",) * 2).cuda().requires_grad_(False)
noise_of = DDPMScheduler()
unet.enable_gradient_checkpointing()
optimizer = torch.optim.AdamW(unet.parameters())
for _ in range(4):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        latents = codec.encode(torch.randn(2, 3, 32, 32).cuda()).latent_dist.sample()
        noise, times = torch.randn_like(latents), torch.randint(1000, (2,)).cuda()
        words = torch.randn(2, 8, 64).cuda()
        guess = unet(noise_of.add_noise(latents, noise, times), times, words).sample
        loss = torch.nn.functional.mse_loss(guess.float(), noise.float())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
