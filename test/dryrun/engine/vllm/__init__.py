# SPDX-License-Identifier: Apache-2.0
"""What programs/serving has in the place of vLLM: its modules' names, and how it uses memory."""
__version__ = "0.19.0"
