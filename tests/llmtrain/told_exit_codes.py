"""What the kernel tells of processes that another one has started."""

import os
import re
import sys


def kernel_tells() -> bool:
    """True from Linux 6.15 on."""
    return sys.platform == "linux" and [int(x) for x in re.findall(r"\d+", os.uname().release)[:2]] >= [6, 15]
