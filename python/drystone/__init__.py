# SPDX-License-Identifier: Apache-2.0
"""Drystone in Python: `drystone.plan` measures a model, has it planned, and runs the plan."""
