# SPDX-License-Identifier: Apache-2.0
from .._errors import Error


class PlanError(Error):
    """There is no plan, or the plan cannot be carried out."""
