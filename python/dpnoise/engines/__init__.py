"""Counting reports on many cores or machines: thin adapters from the engines to `dpnoise.local.Accumulator`.

- `dpnoise.engines.multiprocess`: the processes of one machine, with nothing to install.
- `dpnoise.engines.dask`: Dask, which the extra ``dask`` brings.
- `dpnoise.engines.spark`: Spark, which the extra ``spark`` brings.

Each has ``collect``, which counts the parts of the data where they are stored and moves only the states of
accumulators: 8 bytes for each value, for any number of reports. The result has the same bytes as if one process had
counted everything. Work that is lost with a worker is done again; work that is done twice counts once.
"""

from dpnoise.engines import dask, multiprocess, spark

__all__ = ["dask", "multiprocess", "spark"]
