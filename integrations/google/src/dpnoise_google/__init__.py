"""PyDP and PipelineDP, the Python interfaces of Google's library, with exact, secure noise.

Import a module of this package by its name: `dpnoise_google.pydp` or `dpnoise_google.pipeline_dp`.
"""
