"""The few names of verl 0.9 that a policy loss touches, for machines that do not have verl. Written by hand."""

import importlib
import os

for module in filter(None, os.getenv("VERL_USE_EXTERNAL_MODULES", "").split(",")):
    importlib.import_module(module)
