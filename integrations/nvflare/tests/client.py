"""The training of a site: each number of the model grows by a tenth. All but that is to stay at the site."""

import nvflare.client as flare

flare.init()
while flare.is_running():
    model = flare.receive()
    weights = {name: array + 0.1 for name, array in model.params.items()}
    flare.send(flare.FLModel(params=weights, metrics={"loss": 0.123456}, meta={"NUM_STEPS_CURRENT_ROUND": 17}))
