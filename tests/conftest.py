import os

os.environ["TRITON_INTERPRET"] = "1"  # the kernels' tests run on a CPU; read once, when triton is first imported
