"""Which GPU there is, asked of its driver: before anything is built."""

import ctypes
import re
from dataclasses import dataclass
from pathlib import Path

SIMULATED = "cuda-sim"
_DEVICE = re.compile(r"cuda(?::(\d{1,2}))?")
_MAKERS = {"nvidia", "tesla", "geforce", "quadro", "graphics", "gpu"}
# From here on a name speaks of memory, sockets and editions.
_REST = re.compile(r"\d+(mb|gb)|hbm\d*e?|sxm\d*|pcie|nvl|mig|with|laptop|"
                   r"\d+g\.\d+gb")
_VERSION_FILE = Path("/proc/driver/nvidia/version")


class WrongDevice(Exception):
    """Not a device that can be captured."""


class NoGpu(Exception):
    """The device asked for cannot be had."""


@dataclass(frozen=True)
class Gpu:
    """A device that is there."""

    device: str  # for --device
    name: str    # "NVIDIA H200"
    driver: str  # "driver 580.65.06, CUDA 13.0"

    @property
    def simulated(self):
        return self.device == SIMULATED

    @property
    def folder(self):
        return folder_of(self.name)


def folder_of(name):
    """The folder of a device's samples: "h200" for "NVIDIA H200"."""
    words = []
    for word in re.split(r"[^a-z0-9.]+", name.lower()):
        if words and _REST.fullmatch(word):
            break
        if word and word not in _MAKERS:
            words.append(word.replace(".", "_"))
    folder = "_".join(words)
    return folder if re.match("[a-z]", folder) else f"gpu_{folder}".rstrip("_")


def find(device):
    """The device of that name."""
    if device == SIMULATED:
        return Gpu(device, "CUDA sim", "")
    match = _DEVICE.fullmatch(device)
    if not match:
        raise WrongDevice(f"'{device}' is not a GPU; use cuda, cuda:N or "
                          f"{SIMULATED}")
    name, version = _ask_driver(int(match[1] or 0))
    return Gpu(device, name, _driver_text(version))


def _ask_driver(ordinal):
    """The name of a device, and the CUDA version of the driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoGpu("no NVIDIA driver was found: its library cannot be opened "
                    f"({error})") from None
    _call(driver, "cuInit", ctypes.c_uint(0))
    version, count, handle = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    _call(driver, "cuDriverGetVersion", ctypes.byref(version))
    _call(driver, "cuDeviceGetCount", ctypes.byref(count))
    if ordinal >= count.value:
        raise NoGpu(f"there is no device {ordinal}: the driver finds "
                    f"{count.value}")
    _call(driver, "cuDeviceGet", ctypes.byref(handle), ctypes.c_int(ordinal))
    name = ctypes.create_string_buffer(256)
    _call(driver, "cuDeviceGetName", name, ctypes.c_int(len(name)), handle)
    return name.value.decode("utf-8", "replace"), version.value


def _call(driver, function, *arguments):
    code = getattr(driver, function)(*arguments)
    if code != 0:
        reasons = {100: "no CUDA device was found",
                   34: "the driver's library is the toolkit's empty stand-in",
                   35: "the driver is too old",
                   803: "driver and library do not match"}
        raise NoGpu(f"{reasons.get(code, 'the driver failed')} ({function} "
                    f"failed with code {code})")


def _driver_text(cuda_version):
    cuda = f"CUDA {cuda_version // 1000}.{cuda_version % 1000 // 10}"
    try:
        text = _VERSION_FILE.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return cuda
    found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text)
    return f"driver {found[1]}, {cuda}" if found else cuda
