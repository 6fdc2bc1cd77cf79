# SPDX-License-Identifier: Apache-2.0
"""What programs/serving has in the place of SGLang: its modules' names, and how it uses memory."""
__version__ = "0.5.10"
