"""Opacus, imported here and nowhere else."""

from dpnoise._errors import require

torch = require("torch", "opacus")
data = require("torch.utils.data", "opacus")
engine = require("opacus.privacy_engine", "opacus")
optimizers = require("opacus.optimizers", "opacus")
flags = require("opacus.optimizers.optimizer", "opacus")
samplers = require("opacus.utils.uniform_sampler", "opacus")
