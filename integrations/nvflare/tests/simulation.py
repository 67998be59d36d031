"""Simulate two sites, whose budgets are for two rounds of three. The argument is the folder of the simulation."""

import sys
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import DataKind
from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.client.config import TransferType
from nvflare.recipe import SimEnv

from dpnoise_nvflare import GaussianPrivacy

if __name__ == "__main__":
    recipe = NumpyFedAvgRecipe(
        name="study",
        model=np.ones(10_000, np.float32),
        min_clients=2,
        num_rounds=3,
        train_script=str(Path(__file__).with_name("client.py")),
        params_transfer_type=TransferType.DIFF,
        aggregator_data_kind=DataKind.WEIGHT_DIFF,
    )
    ledger = sys.argv[1] + "/{SITE_NAME}.db"
    privacy = GaussianPrivacy(clip_norm=0.5, noise_multiplier=4.0, ledger=ledger, epsilon=4.0, delta=1e-6)
    recipe.add_client_output_filter(privacy, tasks=["train"])
    recipe.execute(SimEnv(num_clients=2, workspace_root=sys.argv[1]))
