"""Make docs/playground/specifications.json: the protocols among which the playground lets people choose.

A specification has exact probabilities, which the library computes from k and epsilon; the client only reads them. So
the page has one for each point of a grid. A test compares them with the library. Run by
``python docs/site/make_playground.py``.
"""

import json
import re
from pathlib import Path

from dpnoise import local

FILE = Path(__file__).parents[1] / "playground/specifications.json"

PROTOCOLS = [
    local.GeneralizedRandomizedResponse,
    local.SymmetricUnaryEncoding,
    local.OptimizedUnaryEncoding,
    local.LocalHashing,
    local.HadamardResponse,
    local.SubsetSelection,
    local.ProjectiveGeometryResponse,
]
KS = [4, 8, 16, 32, 64]
EPSILONS = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def specifications() -> str:
    """Return the JSON: of each protocol, a line for each k, for each epsilon a specification as text, its p and q."""
    made = {}
    for kind in PROTOCOLS:
        of_k = {str(k): [kind(k=k, epsilon=epsilon) for epsilon in EPSILONS] for k in KS}
        name = json.loads(of_k[str(KS[0])][0].to_json())["protocol"]
        made[name] = {
            k: [{"specification": one.to_json(), "p": one.p, "q": one.q} for one in of_epsilon]
            for k, of_epsilon in of_k.items()
        }
    text = json.dumps({"epsilons": EPSILONS, "protocols": made}, separators=(",", ":"))
    return re.sub(r'("\d+":\[)', r"\n\1", text) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(specifications(), encoding="ascii")
